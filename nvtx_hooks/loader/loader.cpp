// lamina_ops.so: finds the LibTorch that this process has mapped and loads the ops library that was built for it. Knows
// nothing of PyTorch but the names of two functions, so that it is safe beside any version.
#include <dlfcn.h>
#include <link.h>

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>
#include <string>

namespace {

std::string mapped_libtorch() {
  std::string path;
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* found) {
        if (!info->dlpi_name || !strstr(info->dlpi_name, "/libtorch_cpu.so")) return 0;
        *static_cast<std::string*>(found) = info->dlpi_name;
        return 1;
      },
      &path);
  return path;
}

std::string real_path(const std::string& path) {
  char* real = realpath(path.c_str(), nullptr);
  std::string result = real ? real : path;
  free(real);
  return result;
}

std::string folder_of(const std::string& path) { return path.substr(0, path.rfind('/')); }

// 2.11 of a text in which it follows `label`, as in `__version__ = '2.11.0+cu130'`; empty when there is none.
std::string version_after(const std::string& text, const std::string& label) {
  size_t at = text.find(label);
  if (at == std::string::npos) return "";
  const char* begin = text.c_str() + at + label.size();
  int major = 0, minor = 0;
  if (sscanf(begin, "%d.%d", &major, &minor) != 2) return "";
  return std::to_string(major) + "." + std::to_string(minor);
}

std::string file_text(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

// No function of LibTorch tells its version without starting CUDA, which a process that will fork must not do. Its
// folder does: version.py of a wheel, build-version of the C++ archive, Debian's file name.
std::string version_of(const std::string& library) {
  std::string root = folder_of(folder_of(library));
  std::string version = version_after(file_text(root + "/version.py"), "__version__ = '");
  if (version.empty()) version = version_after(file_text(root + "/build-version"), "");
  if (version.empty()) version = version_after(library, "libtorch_cpu.so.");
  return version;
}

// The mangling of a function that returns a std::string.
const char* abi_of(const std::string& library) {
  void* handle = dlopen(library.c_str(), RTLD_LAZY | RTLD_NOLOAD);
  bool cxx11 = handle && dlsym(handle, "_ZN2at11show_configB5cxx11Ev");
  if (handle) dlclose(handle);
  return cxx11 ? "cxx11" : "precxx11";
}

std::string own_folder() {
  Dl_info info;
  bool known = dladdr(reinterpret_cast<void*>(&own_folder), &info) && info.dli_fname;
  return known ? folder_of(info.dli_fname) : ".";
}

std::string load() {
  std::string path = mapped_libtorch();
  if (path.empty()) return "ops are not seen: no LibTorch is loaded in this process";
  std::string version = version_of(real_path(path));
  if (version.empty()) return "ops are not seen: the version of " + path + " is not known";
  const char* abi = abi_of(path);
  std::string name = "lamina_ops-" + version + "-" + abi + ".so";
  std::string file = own_folder() + "/" + name;
  if (access(file.c_str(), R_OK) != 0) {
    return "ops are not seen, only modules: Lamina was not built for this PyTorch, " + version + " with ABI " + abi +
           "; `cmake -DLAMINA_TORCH=" + folder_of(folder_of(path)) + "` builds " + name;
  }
  void* ops = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!ops) return "ops are not seen, only modules: " + std::string(dlerror());
  auto start = reinterpret_cast<int (*)()>(dlsym(ops, "lamina_ops_start"));
  int error = start ? start() : -1;
  return error == 0 ? "" : "ops are not seen: " + name + " gave error " + std::to_string(error);
}

}  // namespace

// Null when ops are observed from now on, else one line that says why not.
extern "C" [[gnu::visibility("default")]] const char* lamina_ops_load() {
  static const std::string problem = load();
  return problem.empty() ? nullptr : problem.c_str();
}
