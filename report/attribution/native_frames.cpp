#include "report/attribution/native_frames.h"

#include <algorithm>

#include "report/attribution/activity_names.h"
#include "report/format.h"

namespace lamina {
namespace {

// By the beginning of the file's name.
constexpr std::string_view kPlumbingLibraries[] = {
    "libcuda", "libcupti", "liblamina_inject", "lamina_hook.", "lamina_ops", "libnvidia", "libnvToolsExt", "libc.so", "ld-linux", "libpthread",
    "libstdc++.so", "libgcc_s", "libpython", "python3", "_ctypes.", "_cffi_backend.", "libffi.so", "libtvm_ffi.", "linux-vdso",
};

// By the beginning of the function's label.
constexpr std::string_view kPlumbingFunctions[] = {
    "std::",       "__gnu_cxx::",     "pybind11::",         "nanobind::",    "c10::impl::",       "c10::detail::",
    "c10::guts::", "c10::Dispatcher", "c10::KernelFunction", "cudaLaunch",   "cudaGraphLaunch",   "cudaMemcpy",
    "cudaMemset",  "__cudart",        "cudart::",           "libcudart_static", "__libc_start", "_start",
    "__clone",     "start_thread",    "nb_func_",           "torch::detail::wrap_pybind", "__tsan_", "__asan_", "asan_thread_start", "__interceptor_",
    "__tvm_ffi_",
};

// Packages of Python that launch what the program has written.
constexpr std::string_view kPlumbingPackages[] = {
    "torch/", "functorch/", "greenlet/", "gevent/", "triton/", "cupy/", "cupyx/", "numba/", "numba_cuda/", "cuda/", "cffi/", "tvm_ffi/", "tvm/", "flashinfer/jit/",
};
// Those whose own native code says nothing either.
constexpr std::string_view kNativePlumbingPackages[] = {"tvm_ffi/"};
constexpr std::string_view kLauncherPackages[] = {"cupy/", "cupy_backends/", "numba/", "numba_cuda/", "tvm_ffi/", "triton/", "greenlet/", "gevent/"};
constexpr std::string_view kPackageFolders[] = {"/site-packages/", "/dist-packages/"};

constexpr std::string_view kStub = "__device_stub__";

bool begins_with_any(std::string_view text, const auto& beginnings) {
  return std::ranges::any_of(beginnings, [&](std::string_view beginning) { return text.starts_with(beginning); });
}

// Where the parameters begin, which is where what came before ends with a name; npos: there are none.
size_t parameters_begin(std::string_view text) {
  int depth = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    bool is_operator = i >= 8 && text.substr(i - 8, 8) == "operator";  // operator<, operator()
    if (is_operator && (c == '(' || c == '<' || c == '>')) {
      if (c == '(') ++i;
      continue;
    }
    if (c == '(' && depth == 0 && !text.substr(i).starts_with("(anonymous namespace)") && i > 0) return i;
    if (c == '<' || c == '(' || c == '{') ++depth;
    if (c == '>' || c == ')' || c == '}') --depth;
  }
  return std::string_view::npos;
}

// `void vllm::launcher<float>(float*)` without what it gives and takes.
std::string_view without_types(std::string_view text) {
  text = text.substr(0, parameters_begin(text));
  int depth = 0;
  for (size_t i = text.size(); i-- > 0;) {
    char c = text[i];
    if (c == '>' || c == ')' || c == '}') ++depth;
    if (c == '<' || c == '(' || c == '{') --depth;
    bool in_operator = text.substr(0, i).ends_with("operator");  // operator new
    if (c == ' ' && depth == 0 && !in_operator) return text.substr(i + 1);
  }
  return text;
}

// The path in the folder of packages; empty: it is in none.
std::string_view path_in_packages(std::string_view path) {
  for (std::string_view folder : kPackageFolders) {
    size_t at = path.rfind(folder);
    if (at != std::string_view::npos) return path.substr(at + folder.size());
  }
  return {};
}

// Python's own modules, launchers, and the hook.
bool is_python_plumbing(std::string_view file) {
  if (file.starts_with("<frozen ") || file.find("/lamina/python/") != std::string_view::npos) return true;
  if (std::string_view path = path_in_packages(file); !path.empty()) return begins_with_any(path, kPlumbingPackages);
  return file.find("/lib/python3.") != std::string_view::npos;
}

std::string_view file_name(std::string_view path) { return path.substr(path.rfind('/') + 1); }

std::string native_label(const CodePlace& place) {
  if (!place.function.empty()) return std::string(without_types(kernel_name(place.function)));
  if (place.module.empty()) return "(code of no file)";
  return fmt::format("{}+0x{:x}", library_name(place.module), place.offset);
}

}  // namespace

std::string library_name(std::string_view module) {
  std::string name(module.substr(module.rfind('/') + 1));  // npos + 1 is 0
  for (std::string_view tag : {".cpython-", ".abi3."}) {
    if (size_t at = name.find(tag); at != std::string::npos && name.ends_with(".so")) return name.substr(0, at) + ".so";
  }
  return name;
}

std::string frame_label(const CodePlace& place, WithLine with_line) {
  std::string label = place.is_python ? std::string(place.function) : native_label(place);
  bool line = with_line == WithLine::kYes && place.line != 0;
  if (place.file.empty() || (!line && !place.is_python)) return label;
  label += fmt::format(" ({}", file_name(place.file));
  if (line) label += fmt::format(":{}", place.line);
  return label + ")";
}

bool is_plumbing(const CodePlace& place, std::string_view kernel) {
  if (place.is_python) return is_python_plumbing(place.file);
  if (begins_with_any(library_name(place.module), kPlumbingLibraries)) return true;
  if (begins_with_any(path_in_packages(place.module), kNativePlumbingPackages)) return true;
  if (place.function.empty()) return false;
  if (place.function == kernel || place.function.find(kStub) != std::string_view::npos) return true;
  return begins_with_any(native_label(place), kPlumbingFunctions);
}

bool is_launcher_code(const CodePlace& place) { return begins_with_any(path_in_packages(place.module), kLauncherPackages); }

}  // namespace lamina
