#include "nvtx_hooks/hook/extension_calls.h"

#include "nvtx_hooks/hook/dynamo_aside.h"
#include "nvtx_hooks/hook/python_key.h"

namespace lamina {
namespace {

PyObject* on_call(PyObject* function, PyObject* const* arguments, size_t count_and_flag, PyObject* names) {
  return ExtensionCalls::instance().call(function, arguments, count_and_flag, names);
}

PyObject* on_load(PyObject* loader, PyObject* const* arguments, size_t count_and_flag, PyObject* names) {
  return ExtensionCalls::instance().load(loader, arguments, count_and_flag, names);
}

}  // namespace

ExtensionCalls& ExtensionCalls::instance() {
  static auto* calls = new ExtensionCalls;
  return *calls;
}

// Each extension module goes through _imp.exec_dynamic, also one that is loaded by its path.
bool ExtensionCalls::start(const RangeDomain& domain, PyObject* seen) {
  Ref imp(PyImport_ImportModule("_imp"));
  Ref load(imp ? PyObject_GetAttrString(imp.get(), "exec_dynamic") : nullptr);
  if (!load) return false;
  g_domain = domain.handle();
  seen_ = Ref::borrowed(seen).release();
  return original_load_ || hook_native(load.get(), on_load, &original_load_);
}

PyObject* ExtensionCalls::load(PyObject* loader, PyObject* const* arguments, size_t count_and_flag, PyObject* names) {
  PyObject* result = original_load_(loader, arguments, count_and_flag, names);
  if (!result || positional_count(count_and_flag) != 1) return result;
  DynamoAside aside;
  Ref told(PyObject_CallFunctionObjArgs(seen_, arguments[0], nullptr));
  if (told) return result;
  Py_DECREF(result);  // an exception that is not ours: a signal handler's
  return nullptr;
}

PyObject* ExtensionCalls::hook(PyObject* function, const char* name, const char* origin) {
  VectorCall before = nullptr;
  if (!hook_native(function, on_call, &before)) return nullptr;
  if (before == on_call) Py_RETURN_FALSE;
  functions_[function] = {before, name, origin};
  Py_RETURN_TRUE;
}

PyObject* ExtensionCalls::call(PyObject* function, PyObject* const* arguments, size_t count_and_flag, PyObject* names) {
  const Function& called = functions_.find(function)->second;
  Py_ssize_t count = positional_count(count_and_flag);
  push_range(called, arguments, count, names);
  PyObject* result = called.original ? called.original(function, arguments, count_and_flag, names)
                                     : call_by_tuple(function, arguments, count, names);
  pop();
  return result;
}

void ExtensionCalls::push_range(const Function& function, PyObject* const* arguments, Py_ssize_t count, PyObject* names) {
  push(*texts_.find(PythonKey(tensors_, function.name, function.origin, arguments, count, names)));
}

}  // namespace lamina
