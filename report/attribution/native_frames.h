// Frames of call stacks as people read them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace lamina {

// A place in the program's code, as the profile has it.
struct CodePlace {
  std::string_view module;    // path of the ELF file; empty: code of no file
  std::string_view function;  // mangled; empty: not known
  std::string_view file;      // source; empty: not known
  uint32_t line = 0;
  bool is_python = false;  // then `function` is as Python has it, and there is no module
  uint64_t offset = 0;     // in the module
};

enum class WithLine : bool { kNo, kYes };

// `attention`, `vllm::launcher<float>`; without a symbol `raw_ops.so+0x1f20`; of Python `Attention.forward (model.py)`. With
// the line, where it is known, `attention (attention.cu:42)`.
std::string frame_label(const CodePlace& place, WithLine with_line = WithLine::kNo);

// `raw_ops.so`, also of `/x/raw_ops.cpython-312-x86_64-linux-gnu.so`
std::string library_name(std::string_view module);

// Whether the frame says nothing of the program: driver, runtime, CUPTI, stubs, the kernel's own host function, the C and C++
// libraries, templates of bindings, the Python interpreter, Python's own modules and those that only launch (PyTorch, Triton,
// CuPy, Numba, ...). `kernel`: mangled name of what the stack launches.
bool is_plumbing(const CodePlace& place, std::string_view kernel);

// Whether the frame is of a package that launches what the program has written (CuPy, Numba, ...): it is told in a trace, but
// is no layer.
bool is_launcher_code(const CodePlace& place);

}  // namespace lamina
