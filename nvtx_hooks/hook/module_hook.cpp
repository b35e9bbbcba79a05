#include "nvtx_hooks/hook/module_hook.h"

#include "nvtx_hooks/hook/dynamo_aside.h"
#include "nvtx_hooks/hook/extension_calls.h"

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
  ModuleHook::instance().freed(static_cast<const PyObject*>(PyLong_AsVoidPtr(self)));
  Py_RETURN_NONE;
}
PyMethodDef on_module_freed_method = {"lamina_module_freed", on_module_freed, METH_O, nullptr};

PyTypeObject* kept_type(PyObject* type) { return reinterpret_cast<PyTypeObject*>(Ref::borrowed(type).release()); }

}  // namespace

thread_local ModuleHook::Call* ModuleHook::innermost = nullptr;
thread_local ModuleHook::Call* ModuleHook::unused = nullptr;

ModuleHook::ModuleHook() : describer_(ExtensionCalls::instance().tensors()) {}

ModuleHook& ModuleHook::instance() {
  static auto* hook = new ModuleHook;
  return *hook;
}

bool ModuleHook::install(PyObject* module_class, PyObject* parameter_class, PyObject* on_news, PyObject* engines) {
  Ref call(PyObject_GetAttrString(module_class, "__call__"));
  Ref setattr(PyObject_GetAttrString(module_class, "__setattr__"));
  if (!call || !setattr) return false;
  module_class_ = kept_type(module_class);
  parameter_class_ = kept_type(parameter_class);
  on_news_ = Ref::borrowed(on_news).release();
  for (Py_ssize_t i = 0; i < PyTuple_Size(engines); ++i) {
    engines_.push_back(Ref::borrowed(PyTuple_GetItem(engines, i)));
  }
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

ModuleHook::Call* ModuleHook::open(PyObject* module, PyObject* own) {
  Call* call = unused;
  if (call) {
    unused = call->caller;
  } else {
    call = new Call;
  }
  *call = {innermost, module, nullptr, own};
  return innermost = call;
}

// Greenlets and the like may end an outer call before an inner one.
void ModuleHook::close(Call* call) {
  Call** at = &innermost;
  while (*at && *at != call) at = &(*at)->caller;
  if (!*at) return;
  *at = call->caller;
  call->caller = unused;
  unused = call;
}

PyObject* ModuleHook::call(bool own, PyObject* function, PyObject* const* arguments, size_t count_and_flag, PyObject* names) {
  VectorCall original = original_call;
  Py_ssize_t count = positional_count(count_and_flag);
  if (count == 0) return original(function, arguments, count_and_flag, names);
  PyObject* module = arguments[0];
  if (innermost && innermost->own && innermost->module == module && innermost->own != function) {
    innermost->own = own ? function : nullptr;  // from the __call__ of a class to that of one above: one call
    return original(function, arguments, count_and_flag, names);
  }
  Call* caller = innermost;
  if (!caller) [[unlikely]] forget_if_converted(module);
  const ModuleName* name = names_.find(module, caller ? caller->name : nullptr);
  if (!name) [[unlikely]] name = make_name(module, caller);
  nvtxStringHandle_t step = nullptr;
  if (!caller) [[unlikely]] {
    if (!tell_news(name)) return nullptr;
    if (name->decoding != Decoding::kNone) step = steps_.step_of_call(domain_, name->decoding, arguments, count, names);
  }
  if (step) domain_.push(step);
  Call* call = open(module, own ? function : nullptr);
  call->name = name;
  domain_.push(name->message);
  PyObject* result = original(function, arguments, count_and_flag, names);
  domain_.pop();
  close(call);
  if (step) domain_.pop();
  return result;
}

// ---- roots

// A model is converted from its root: then the names of all modules in it are old.
void ModuleHook::forget_if_converted(PyObject* module) {
  auto [known, added] = dtypes_.try_emplace(module);
  if (added) {
    known->second.parameter = describer_.first_parameter(module);
    known->second.dtype = describer_.dtype_at(known->second.parameter);
  } else if (PyObject* dtype = describer_.dtype_at(known->second.parameter); dtype != known->second.dtype) {
    known->second.dtype = dtype;
    names_.forget_all();
  }
}

// False with an exception that is not ours: a signal handler's.
bool ModuleHook::tell_news(const ModuleName* name) {
  for (auto engine = engines_.begin(); engine != engines_.end(); ++engine) {
    if (!PyDict_GetItem(PyImport_GetModuleDict(), engine->get())) continue;
    engines_.erase(engine);
    return tell(Py_False);
  }
  if (decoding_seen_ || name->decoding == Decoding::kNone) return true;
  decoding_seen_ = true;
  return tell(Py_True);
}

bool ModuleHook::tell(PyObject* news) {
  DynamoAside aside;
  Ref result(PyObject_CallFunctionObjArgs(on_news_, news, nullptr));
  return static_cast<bool>(result);
}

// ---- names

const ModuleName* ModuleHook::intern(const Description& description) {
  std::string text = description.name + " @ " + description.path;
  ModuleName*& name = by_text_[text];
  if (!name) name = new ModuleName{domain_.message(text.c_str()), description.path, description.decoding};
  return name;
}

void ModuleHook::keep(PyObject* module, const ModuleName* caller, const ModuleName* name, Place place) {
  Ref address(PyLong_FromVoidPtr(module));
  Ref callback(address ? PyCFunction_NewEx(&on_module_freed_method, address.get(), nullptr) : nullptr);
  Ref life(callback ? PyWeakref_NewRef(module, callback.get()) : nullptr);
  if (!life) return PyErr_Clear();  // it is described at each call
  names_.add(module, caller, name, std::move(life), std::move(place));
}

// The first call of a module from here, or the first since something changed.
const ModuleName* ModuleHook::make_name(PyObject* module, const Call* caller) {
  const ModuleName* caller_name = caller ? caller->name : nullptr;
  std::vector<OpenModule> callers;
  for (const Call* open = caller; open; open = open->caller) callers.push_back({open->module, &open->name->path});
  Description description = describer_.describe(module, callers);
  const ModuleName* name = intern(description);
  keep(module, caller_name, name, std::move(description.place));
  return name;
}

void ModuleHook::freed(const PyObject* module) {
  names_.forget(module);
  dtypes_.erase(module);
  describer_.forget_root(module);
}

// Its text is made again at its next call: a parameter is part of it. A child may have moved.
void ModuleHook::changed(PyObject* module, PyObject* value) {
  see_class(Py_TYPE(module));
  if (PyType_IsSubtype(Py_TYPE(value), module_class_)) names_.forget(value);
  // Or its class: a lazy module becomes another when it is called first.
  if (PyType_IsSubtype(Py_TYPE(value), parameter_class_) || PyType_Check(value)) names_.forget(module);
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
