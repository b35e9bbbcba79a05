#include "nvtx_hooks/hook/module_hook.h"

#include "nvtx_hooks/hook/dynamo_aside.h"

namespace lamina {
namespace {

VectorCall original_call = nullptr;
VectorCall original_setattr = nullptr;

// nn.Module.__call__
PyObject* on_call(PyObject* function, PyObject* const* arguments, size_t count_and_flag, PyObject* names) {
  return ModuleHook::instance().call(false, function, arguments, count_and_flag, names);
}

// The __call__ of a class derived from it.
PyObject* on_own_call(PyObject* function, PyObject* const* arguments, size_t count_and_flag, PyObject* names) {
  return ModuleHook::instance().call(true, function, arguments, count_and_flag, names);
}

// nn.Module.__setattr__(self, name, value)
PyObject* on_setattr(PyObject* function, PyObject* const* arguments, size_t count_and_flag, PyObject* names) {
  PyObject* result = original_setattr(function, arguments, count_and_flag, names);
  bool usual = positional_count(count_and_flag) == 3 && !names;
  if (result && usual) ModuleHook::instance().changed(arguments[0], arguments[2]);
  return result;
}

// Called with the weak reference of a module that is being freed; `self` is the module's address.
PyObject* on_module_freed(PyObject* self, PyObject*) {
  ModuleHook::instance().forget(static_cast<const PyObject*>(PyLong_AsVoidPtr(self)));
  Py_RETURN_NONE;
}
PyMethodDef on_module_freed_method = {"lamina_module_freed", on_module_freed, METH_O, nullptr};

std::string text_of(PyObject* string) {
  Ref bytes(string && PyUnicode_Check(string) ? PyUnicode_AsEncodedString(string, "utf-8", "replace") : nullptr);
  if (!bytes) {
    PyErr_Clear();
    return "(unnamed)";
  }
  return PyBytes_AsString(bytes.get());
}

PyTypeObject* kept_type(PyObject* type) { return reinterpret_cast<PyTypeObject*>(Ref::borrowed(type).release()); }

}  // namespace

thread_local ModuleHook::Call* ModuleHook::innermost = nullptr;

ModuleHook& ModuleHook::instance() {
  static auto* hook = new ModuleHook;
  return *hook;
}

bool ModuleHook::install(PyObject* module_class, PyObject* parameter_class, PyObject* describe) {
  Ref call(PyObject_GetAttrString(module_class, "__call__"));
  Ref setattr(PyObject_GetAttrString(module_class, "__setattr__"));
  if (!call || !setattr) return false;
  module_class_ = kept_type(module_class);
  parameter_class_ = kept_type(parameter_class);
  describe_ = Ref::borrowed(describe).release();
  original_call = hook_function(call.get(), on_call);
  if (!original_call) return false;
  module_call_ = call.release();
  original_setattr = hook_function(setattr.get(), on_setattr);
  return original_setattr != nullptr;
}

void ModuleHook::see_class(PyTypeObject* type) {
  Ref& seen = seen_classes_[type];
  if (seen && PyWeakref_GetObject(seen.get()) == reinterpret_cast<PyObject*>(type)) return;
  seen = Ref(PyWeakref_NewRef(reinterpret_cast<PyObject*>(type), nullptr));
  Ref call(PyObject_GetAttrString(reinterpret_cast<PyObject*>(type), "__call__"));
  bool has_own = call && call.get() != module_call_ && Py_TYPE(call.get()) == Py_TYPE(module_call_);
  if (has_own) hook_function(call.get(), on_own_call);
  // It may be hooked as that of a class above, or be no plain function.
  if (PyErr_Occurred()) PyErr_Clear();
}

// ---- a call

PyObject* ModuleHook::call(bool own, PyObject* function, PyObject* const* arguments, size_t count_and_flag, PyObject* names) {
  VectorCall original = original_call;
  Py_ssize_t count = positional_count(count_and_flag);
  if (count == 0) return original(function, arguments, count_and_flag, names);
  if (innermost && innermost->own && innermost->module == arguments[0] && innermost->own != function) {
    innermost->own = own ? function : nullptr;  // from the __call__ of a class to that of one above: one call
    return original(function, arguments, count_and_flag, names);
  }
  Call call{innermost, arguments[0], nullptr, own ? function : nullptr};
  const ModuleName* caller = call.caller ? call.caller->name : nullptr;
  call.name = names_.find(call.module, caller);
  if (!call.name) [[unlikely]] call.name = make_name(call.module, call.caller);
  if (!call.name) return original(function, arguments, count_and_flag, names);
  nvtxStringHandle_t step = nullptr;
  if (!caller && call.name->decodes) step = steps_.step_of_call(domain_, arguments, count, names);
  if (step) domain_.push(step);
  innermost = &call;
  domain_.push(call.name->message);
  PyObject* result = original(function, arguments, count_and_flag, names);
  domain_.pop();
  innermost = call.caller;
  if (step) domain_.pop();
  return result;
}

// ---- names

Ref ModuleHook::ask_for_description(PyObject* module, const Call* caller) {
  DynamoAside aside;
  Ref callers(PyList_New(0));
  for (; caller && callers; caller = caller->caller) {
    Ref pair(PyTuple_Pack(2, caller->module, caller->name->path));
    if (!pair || PyList_Append(callers.get(), pair.get()) != 0) return Ref();
  }
  if (!callers) return Ref();
  return Ref(PyObject_CallFunctionObjArgs(describe_, module, callers.get(), nullptr));
}

const ModuleName* ModuleHook::intern(PyObject* description) {
  PyObject* class_text = PyTuple_GetItem(description, 0);
  PyObject* path = PyTuple_GetItem(description, 1);
  std::string text = text_of(class_text) + " @ " + text_of(path);
  ModuleName*& name = by_text_[text];
  if (!name) {
    bool decodes = PyTuple_GetItem(description, 2) == Py_True;
    name = new ModuleName{domain_.message(text.c_str()), Ref::borrowed(path).release(), decodes};
  }
  return name;
}

void ModuleHook::keep(PyObject* module, const ModuleName* caller, const ModuleName* name) {
  Ref address(PyLong_FromVoidPtr(module));
  Ref callback(address ? PyCFunction_NewEx(&on_module_freed_method, address.get(), nullptr) : nullptr);
  Ref life(callback ? PyWeakref_NewRef(module, callback.get()) : nullptr);
  if (life) names_.add(module, caller, name, std::move(life));
}

// The first call of a module from here. Without a description it goes on without a range.
const ModuleName* ModuleHook::make_name(PyObject* module, const Call* caller) {
  Ref description = ask_for_description(module, caller);
  const ModuleName* name = nullptr;
  if (description && PyTuple_Check(description.get()) && PyTuple_Size(description.get()) == 3) name = intern(description.get());
  if (name) keep(module, caller ? caller->name : nullptr, name);
  if (PyErr_Occurred()) PyErr_Clear();
  return name;
}

// Its text is made again at its next call: a parameter is part of it. A child may have moved.
void ModuleHook::changed(PyObject* module, PyObject* value) {
  see_class(Py_TYPE(module));
  if (PyType_IsSubtype(Py_TYPE(value), module_class_)) forget(value);
  // Or its class: a lazy module becomes another when it is called first.
  if (PyType_IsSubtype(Py_TYPE(value), parameter_class_) || PyType_Check(value)) forget(module);
}

// ---- graphs

PyObject* ModuleHook::replay(PyObject* graph, PyObject* original) {
  nvtxStringHandle_t step = innermost ? nullptr : steps_.step_of_replay(graph);
  if (step) domain_.push(step);
  PyObject* result = PyObject_CallFunctionObjArgs(original, graph, nullptr);
  if (step) domain_.pop();
  return result;
}

}  // namespace lamina
