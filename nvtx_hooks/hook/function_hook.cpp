#include "nvtx_hooks/hook/function_hook.h"

#include <dlfcn.h>

#include <cstring>

namespace lamina {
namespace {

// PyTypeObject.tp_vectorcall_offset is no part of the stable ABI. The fields before it have not moved since Python 3.8,
// in builds with a GIL.
constexpr size_t kVectorcallOffsetInType = 56;

template <typename T>
T read(const void* object, size_t offset) {
  T value;
  memcpy(&value, static_cast<const char*>(object) + offset, sizeof(value));
  return value;
}

long basic_size(PyObject* type) {
  Ref size(PyObject_GetAttrString(type, "__basicsize__"));
  return size ? PyLong_AsLong(size.get()) : -1;
}

// A Python function made here, which nobody has exchanged the pointer of.
Ref plain_function() {
  Ref globals(PyDict_New());
  PyDict_SetItemString(globals.get(), "__builtins__", PyEval_GetBuiltins());
  Ref code(Py_CompileString("lambda: None", "<lamina>", Py_eval_input));
  return Ref(code ? PyEval_EvalCode(code.get(), globals.get(), globals.get()) : nullptr);
}

// Where functions have their vectorcall pointer; 0, with a Python error set, if that can not be told for sure.
size_t vectorcall_offset(PyObject* function) {
  auto fail = [](const char* why) {
    if (!PyErr_Occurred()) PyErr_Format(PyExc_RuntimeError, "functions of this Python can not be hooked: %s", why);
    return size_t{0};
  };
  Ref plain = plain_function();
  if (!plain) return fail("none can be made");
  PyObject* type = reinterpret_cast<PyObject*>(Py_TYPE(plain.get()));
  if (reinterpret_cast<PyObject*>(Py_TYPE(function)) != type) return fail("it is not a plain one");
  auto offset = read<Py_ssize_t>(type, kVectorcallOffsetInType);
  if (offset < 16 || offset % 8 != 0 || offset + 8 > basic_size(type)) return fail("their type is laid out in another way");
  // The pointer of any function is that of the interpreter's own entry for functions.
  void* pointer = read<void*>(plain.get(), static_cast<size_t>(offset));
  Dl_info found, interpreter;
  if (!dladdr(pointer, &found) || !dladdr(reinterpret_cast<void*>(&PyObject_Call), &interpreter) ||
      found.dli_fbase != interpreter.dli_fbase) {
    return fail("their entry is not the interpreter's");
  }
  if (read<void*>(function, static_cast<size_t>(offset)) != pointer) return fail("another tool has done so before");
  return static_cast<size_t>(offset);
}

}  // namespace

VectorCall hook_function(PyObject* function, VectorCall ours) {
  size_t offset = vectorcall_offset(function);
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

}  // namespace lamina
