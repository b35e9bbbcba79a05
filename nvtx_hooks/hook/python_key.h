// The key of a call from Python with its arguments. Reading them runs no code of the program.
#pragma once

#include "nvtx_hooks/hook/tensor_reader.h"
#include "nvtx_hooks/text/call_key.h"

namespace lamina {

class PythonKey : public CallKey {
 public:
  // `arguments`: `count` positional ones, then one for each of `names` (a tuple or null).
  PythonKey(const TensorReader& tensors, std::string_view name, std::string_view origin, PyObject* const* arguments,
            Py_ssize_t count, PyObject* names);

 private:
  void add(PyObject* value, int depth);
  void add_string(TokenKind kind, PyObject* string);
  template <typename At>
  void add_entries(TokenKind open, TokenKind close, Py_ssize_t count, At at, int depth);

  const TensorReader& tensors_;
};

}  // namespace lamina
