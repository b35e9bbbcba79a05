// Puts a function of ours before a Python function, by the pointer through which CPython calls it.
#pragma once

#include "nvtx_hooks/hook/python.h"

namespace lamina {

using VectorCall = PyObject* (*)(PyObject* callable, PyObject* const* arguments, size_t count_and_flag, PyObject* names);

// Exchanges the vectorcall pointer of `function`, a plain Python function, and returns the one before; null, with a Python
// error set, when this interpreter's functions are not laid out as they are known to be. The function stays the same
// object with the same code.
VectorCall hook_function(PyObject* function, VectorCall ours);

}  // namespace lamina
