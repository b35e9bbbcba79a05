// Puts a function of ours before a Python or C function, by the pointer through which CPython calls it. The function stays
// the same object, equal to the same and with the same hash, and with the same code. (By its ml_meth a C function could be
// caught too, but its hash would be another one, and each kind of function would take a stub of its own for each function.)
#pragma once

#include <cstdint>

#include "nvtx_hooks/hook/python.h"

namespace lamina {

using VectorCall = PyObject* (*)(PyObject* callable, PyObject* const* arguments, size_t count_and_flag, PyObject* names);

// The number of positional arguments. The upper bits are flags: one of Python's, another of nanobind's.
inline Py_ssize_t positional_count(size_t count_and_flag) { return static_cast<uint32_t>(count_and_flag); }

// Exchanges the vectorcall pointer of `function`, a plain Python function, and returns the one before; null, with a Python
// error set, when this interpreter's functions are not laid out as they are known to be.
VectorCall hook_function(PyObject* function, VectorCall ours);

// The same of a builtin function (of the C API, of pybind11), which has no pointer if it takes a tuple, or of a function of
// another type that has such a pointer (nanobind). False, with a Python error set, where it is not known to be one of these.
// `before` is `ours` where that had been done already.
bool hook_native(PyObject* function, VectorCall ours, VectorCall* before);

// A builtin function without a pointer, called as the interpreter would.
PyObject* call_by_tuple(PyObject* function, PyObject* const* arguments, Py_ssize_t count, PyObject* names);

}  // namespace lamina
