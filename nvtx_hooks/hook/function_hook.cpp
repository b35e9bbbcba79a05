#include "nvtx_hooks/hook/function_hook.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <unistd.h>

#include <cstring>

namespace lamina {
namespace {

// What is no part of the stable ABI: fields before PyTypeObject.tp_vectorcall_offset have not moved since Python 3.8, in
// builds with a GIL, nor has PyCFunctionObject.m_ml.
constexpr size_t kVectorcallOffsetInType = 56;
constexpr unsigned long kHasVectorcall = 1ul << 11;  // Py_TPFLAGS_HAVE_VECTORCALL
constexpr size_t kDefinitionOffset = 16;

template <typename T>
T read(const void* object, size_t offset) {
  T value;
  memcpy(&value, static_cast<const char*>(object) + offset, sizeof(value));
  return value;
}

size_t fail(const char* why) {
  if (!PyErr_Occurred()) PyErr_Format(PyExc_RuntimeError, "functions of this Python can not be hooked: %s", why);
  return 0;
}

long basic_size(PyObject* type) {
  Ref size(PyObject_GetAttrString(type, "__basicsize__"));
  return size ? PyLong_AsLong(size.get()) : -1;
}

// Where objects of this type have their vectorcall pointer; 0, with a Python error set, if that can not be told for sure.
size_t vectorcall_offset(PyTypeObject* type) {
  auto offset = read<Py_ssize_t>(type, kVectorcallOffsetInType);
  bool sane = (PyType_GetFlags(type) & kHasVectorcall) && offset >= 16 && offset % 8 == 0 &&
              offset + 8 <= basic_size(reinterpret_cast<PyObject*>(type));
  return sane ? static_cast<size_t>(offset) : fail("their type is laid out in another way");
}

// The library that a pointer points into, by its base; null for none.
const void* library_of(const void* pointer) {
  Dl_info found;
  return pointer && dladdr(pointer, &found) ? found.dli_fbase : nullptr;
}

bool is_of_interpreter(const void* pointer) {
  static const void* interpreter = library_of(reinterpret_cast<void*>(&PyObject_Call));
  return interpreter && library_of(pointer) == interpreter;
}

// ---- Python functions

// A Python function made here, which nobody has exchanged the pointer of.
Ref plain_function() {
  Ref globals(PyDict_New());
  PyDict_SetItemString(globals.get(), "__builtins__", PyEval_GetBuiltins());
  Ref code(Py_CompileString("lambda: None", "<lamina>", Py_eval_input));
  return Ref(code ? PyEval_EvalCode(code.get(), globals.get(), globals.get()) : nullptr);
}

size_t function_offset(PyObject* function) {
  Ref plain = plain_function();
  if (!plain) return fail("none can be made");
  if (Py_TYPE(function) != Py_TYPE(plain.get())) return fail("it is not a plain one");
  size_t offset = vectorcall_offset(Py_TYPE(function));
  if (offset == 0) return 0;
  // The pointer of any function is that of the interpreter's own entry for functions.
  void* pointer = read<void*>(plain.get(), offset);
  if (!is_of_interpreter(pointer)) return fail("their entry is not the interpreter's");
  if (read<void*>(function, offset) != pointer) return fail("another tool has done so before");
  return offset;
}

// ---- builtin functions

PyObject* do_nothing(PyObject*, PyObject*) { Py_RETURN_NONE; }
PyMethodDef takes_one = {"takes_one", do_nothing, METH_O, nullptr};
PyMethodDef takes_tuple = {"takes_tuple", do_nothing, METH_VARARGS, nullptr};

PyTypeObject* builtin_type() {
  static PyTypeObject* type = Py_TYPE(Ref(PyCFunction_NewEx(&takes_one, nullptr, nullptr)).get());
  return type;
}

// Two functions of ours are as builtin functions are known to be: one has a pointer, one has none.
bool builtins_are_known() {
  Ref one(PyCFunction_NewEx(&takes_one, nullptr, nullptr)), tuple(PyCFunction_NewEx(&takes_tuple, nullptr, nullptr));
  size_t offset = one && tuple ? vectorcall_offset(builtin_type()) : 0;
  return offset != 0 && read<PyMethodDef*>(one.get(), kDefinitionOffset) == &takes_one &&
         read<PyMethodDef*>(tuple.get(), kDefinitionOffset) == &takes_tuple &&
         is_of_interpreter(read<void*>(one.get(), offset)) && !read<void*>(tuple.get(), offset);
}

// Through the kernel: memory that can not be written is an error there, not a signal.
bool write_safely(void* place, int value) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return false;
  constexpr auto kSize = static_cast<ssize_t>(sizeof(value));
  bool done = ::write(ends[1], &value, kSize) == kSize && ::read(ends[0], place, kSize) == kSize;
  close(ends[0]);
  close(ends[1]);
  return done;
}

// From 3.11 on the interpreter calls some kinds of functions at once, without their pointer, while their flags are exactly
// those of the kind. This flag means nothing outside of a class.
bool keep_interpreter_from_bypass(PyObject* builtin) {
  auto* definition = read<PyMethodDef*>(builtin, kDefinitionOffset);
  if (definition->ml_flags & METH_COEXIST) return true;
  return write_safely(&definition->ml_flags, definition->ml_flags | METH_COEXIST);
}

bool is_builtin_hookable(PyObject* function, const void* pointer) {
  static const bool known = builtins_are_known();
  if (!known) return fail("builtin functions are laid out in another way");
  if (pointer && !is_of_interpreter(pointer)) return fail("another tool has done so before");
  return keep_interpreter_from_bypass(function) || fail("its definition can not be written");
}

}  // namespace

VectorCall hook_function(PyObject* function, VectorCall ours) {
  size_t offset = function_offset(function);
  if (offset == 0) return nullptr;
  auto before = read<VectorCall>(function, offset);
  // From 3.12 on this also tells the adaptive interpreter not to bypass the pointer.
  using SetVectorcall = void (*)(PyObject*, VectorCall);
  if (auto set = reinterpret_cast<SetVectorcall>(dlsym(RTLD_DEFAULT, "PyFunction_SetVectorcall"))) {
    set(function, ours);
  } else {
    memcpy(reinterpret_cast<char*>(function) + offset, &ours, sizeof(ours));
  }
  return before;
}

bool hook_native(PyObject* function, VectorCall ours, VectorCall* before) {
  size_t offset = vectorcall_offset(Py_TYPE(function));
  if (offset == 0) return false;
  *before = read<VectorCall>(function, offset);
  if (*before == ours) return true;
  const void* pointer = reinterpret_cast<const void*>(*before);
  if (Py_TYPE(function) == builtin_type()) {
    if (!is_builtin_hookable(function, pointer)) return false;
  } else if (!library_of(pointer) || is_of_interpreter(pointer)) {
    return fail("its entry is not that of a library");
  }
  memcpy(reinterpret_cast<char*>(function) + offset, &ours, sizeof(ours));
  return true;
}

PyObject* call_by_tuple(PyObject* function, PyObject* const* arguments, Py_ssize_t count, PyObject* names) {
  static const auto call = reinterpret_cast<ternaryfunc>(PyType_GetSlot(builtin_type(), Py_tp_call));
  Py_ssize_t named_count = names ? PyTuple_Size(names) : 0;
  Ref positional(PyTuple_New(count)), named(named_count ? PyDict_New() : nullptr);
  if (!positional || (named_count && !named)) return nullptr;
  for (Py_ssize_t i = 0; i < count; ++i) PyTuple_SetItem(positional.get(), i, Ref::borrowed(arguments[i]).release());
  for (Py_ssize_t i = 0; i < named_count; ++i) {
    if (PyDict_SetItem(named.get(), PyTuple_GetItem(names, i), arguments[count + i]) != 0) return nullptr;
  }
  if (Py_EnterRecursiveCall(" while calling a Python object")) return nullptr;
  PyObject* result = call(function, positional.get(), named.get());
  Py_LeaveRecursiveCall();
  return result;
}

}  // namespace lamina
