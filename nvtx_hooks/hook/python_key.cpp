#include "nvtx_hooks/hook/python_key.h"

#include <algorithm>

namespace lamina {
namespace {

constexpr Py_ssize_t kMaxEntries = 8;  // of a list

// The name without asking the class's own class, which may have Python code for its attributes.
Ref type_name(PyTypeObject* type) {
  static PyObject* descriptor = [] {
    Ref attributes(PyObject_GetAttrString(reinterpret_cast<PyObject*>(&PyType_Type), "__dict__"));
    return PyObject_GetItem(attributes.get(), Ref(PyUnicode_FromString("__name__")).get());
  }();
  static const auto get = reinterpret_cast<descrgetfunc>(PyType_GetSlot(Py_TYPE(descriptor), Py_tp_descr_get));
  return Ref(get(descriptor, reinterpret_cast<PyObject*>(type), reinterpret_cast<PyObject*>(Py_TYPE(type))));
}

}  // namespace

PythonKey::PythonKey(const TensorReader& tensors, std::string_view name, std::string_view origin, PyObject* const* arguments,
                     Py_ssize_t count, PyObject* names)
    : tensors_(tensors) {
  set_name(name, origin);
  for (Py_ssize_t i = 0; i < count; ++i) add(arguments[i], 0);
  Py_ssize_t named = names ? PyTuple_Size(names) : 0;
  for (Py_ssize_t i = 0; i < named; ++i) {
    add_string(TokenKind::kKeyword, PyTuple_GetItem(names, i));
    add(arguments[count + i], 0);
  }
  set_hash();
}

void PythonKey::add(PyObject* value, int depth) {
  if (is_cut()) return;
  if (tensors_.is_tensor(value)) return tensors_.add(*this, value);
  if (value == Py_None) return add_token({TokenKind::kNone});
  if (value == Py_True || value == Py_False) return add_value({TokenKind::kBool}, value == Py_True);
  if (PyLong_CheckExact(value)) return add_text(TokenKind::kTypeName, "int");
  if (PyFloat_CheckExact(value)) return add_text(TokenKind::kTypeName, "float");
  if (PyUnicode_CheckExact(value)) return add_string(TokenKind::kString, value);
  if (PyList_CheckExact(value)) {
    auto at = [value](Py_ssize_t i) { return PyList_GetItem(value, i); };
    return add_entries(TokenKind::kListOpen, TokenKind::kListClose, PyList_Size(value), at, depth);
  }
  if (PyTuple_CheckExact(value)) {
    auto at = [value](Py_ssize_t i) { return PyTuple_GetItem(value, i); };
    return add_entries(TokenKind::kTupleOpen, TokenKind::kTupleClose, PyTuple_Size(value), at, depth);
  }
  add_string(TokenKind::kTypeName, type_name(Py_TYPE(value)).get());
}

void PythonKey::add_string(TokenKind kind, PyObject* string) {
  // One character more than is shown, so that it is seen to be cut. Python keeps the UTF-8 of what is asked for whole.
  constexpr auto kEnough = static_cast<Py_ssize_t>(kMaxText) + 1;
  bool is_long = string && PyUnicode_GetLength(string) > kEnough;
  Ref start = is_long ? Ref(PyUnicode_Substring(string, 0, kEnough)) : Ref::borrowed(string);
  Py_ssize_t size = 0;
  const char* bytes = start ? PyUnicode_AsUTF8AndSize(start.get(), &size) : nullptr;
  if (!bytes) {  // half a surrogate pair
    PyErr_Clear();
    return add_text(TokenKind::kTypeName, "str");
  }
  add_text(kind, {bytes, static_cast<size_t>(size)});
}

template <typename At>
void PythonKey::add_entries(TokenKind open, TokenKind close, Py_ssize_t count, At at, int depth) {
  add_token({open});
  Py_ssize_t shown = depth < kMaxDepth ? std::min(count, kMaxEntries) : 0;
  for (Py_ssize_t i = 0; i < shown; ++i) add(at(i), depth + 1);
  if (shown < count) add_token({TokenKind::kMore});
  add_token({close});
}

}  // namespace lamina
