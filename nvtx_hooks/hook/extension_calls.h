// One range for each call of a function of an extension module, with the arguments' dtypes and shapes.
#pragma once

#include <string>
#include <unordered_map>

#include "nvtx_hooks/hook/function_hook.h"
#include "nvtx_hooks/hook/range.h"
#include "nvtx_hooks/hook/tensor_reader.h"
#include "nvtx_hooks/text/text_cache.h"

namespace lamina {

// All of it is used under the GIL.
class ExtensionCalls {
 public:
  // Never destroyed: functions point to it as long as the process lives.
  static ExtensionCalls& instance();

  // From now on `seen(module)` is called after each extension module that was loaded. False with a Python error when that
  // can not be had.
  bool start(const RangeDomain& domain, PyObject* seen);
  TensorReader& tensors() { return tensors_; }

  // Calls of `function` are ranges from now on, `name(…) <- origin`. True unless they had been before; null with a Python
  // error when it can not be hooked.
  PyObject* hook(PyObject* function, const char* name, const char* origin);

  PyObject* call(PyObject* function, PyObject* const* arguments, size_t count_and_flag, PyObject* names);
  PyObject* load(PyObject* loader, PyObject* const* arguments, size_t count_and_flag, PyObject* names);

 private:
  struct Function {
    VectorCall original = nullptr;  // null for one that takes a tuple
    std::string name;
    std::string origin;
  };

  ExtensionCalls() = default;
  void push_range(const Function& function, PyObject* const* arguments, Py_ssize_t count, PyObject* names);

  std::unordered_map<PyObject*, Function> functions_;  // one that was freed stays until its place is another's
  TensorReader tensors_;
  TextCache texts_;
  VectorCall original_load_ = nullptr;
  PyObject* seen_ = nullptr;
};

}  // namespace lamina
