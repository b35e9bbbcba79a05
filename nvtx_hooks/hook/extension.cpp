// The Python module `lamina_hook`: what lamina_torch.py calls to install the hook.
#include <dlfcn.h>

#include <cstring>

#include "nvtx_hooks/hook/extension_calls.h"
#include "nvtx_hooks/hook/module_hook.h"

namespace lamina {
namespace {

PyObject* attached(PyObject*, PyObject*) { return PyBool_FromLong(ModuleHook::instance().attached()); }

PyObject* install(PyObject*, PyObject* arguments) {
  PyObject *module_class, *parameter_class, *on_news, *engines;
  if (!PyArg_ParseTuple(arguments, "OOOO!", &module_class, &parameter_class, &on_news, &PyTuple_Type, &engines)) return nullptr;
  if (!ModuleHook::instance().install(module_class, parameter_class, on_news, engines)) return nullptr;
  Py_RETURN_NONE;
}

PyObject* see_class(PyObject*, PyObject* type) {
  if (PyType_Check(type)) ModuleHook::instance().see_class(reinterpret_cast<PyTypeObject*>(type));
  Py_RETURN_NONE;
}

PyObject* find_steps(PyObject*, PyObject* arguments) {
  PyObject *token_dtypes, *is_capturing;
  if (!PyArg_ParseTuple(arguments, "OO", &token_dtypes, &is_capturing)) return nullptr;
  ModuleHook::instance().steps().start(ExtensionCalls::instance().tensors(), token_dtypes, is_capturing);
  Py_RETURN_NONE;
}

// ---- steps of serving engines

PyObject* open_step(PyObject*, PyObject* arguments) {
  const char* text;
  if (!PyArg_ParseTuple(arguments, "s", &text)) return nullptr;
  ModuleHook::instance().steps().stop();
  ModuleHook::instance().domain().push(text);
  Py_RETURN_NONE;
}

PyObject* close_step(PyObject*, PyObject*) {
  ModuleHook::instance().domain().pop();
  Py_RETURN_NONE;
}

// ---- functions of extension modules

PyObject* watch_extensions(PyObject*, PyObject* seen) {
  if (!ExtensionCalls::instance().start(ModuleHook::instance().domain(), seen)) return nullptr;
  Py_RETURN_NONE;
}

PyObject* read_tensors(PyObject*, PyObject* arguments) {
  PyObject *tensor_class, *parameter_class;
  const char* library;
  if (!PyArg_ParseTuple(arguments, "OOs", &tensor_class, &parameter_class, &library)) return nullptr;
  ExtensionCalls::instance().tensors().start(tensor_class, parameter_class, library);
  Py_RETURN_NONE;
}

PyObject* hook_extension_function(PyObject*, PyObject* arguments) {
  PyObject* function;
  const char *name, *origin;
  if (!PyArg_ParseTuple(arguments, "Oss", &function, &name, &origin)) return nullptr;
  return ExtensionCalls::instance().hook(function, name, origin);
}

// ---- torch.cuda.CUDAGraph

PyObject* original_replay = nullptr;
PyObject* original_capture_begin = nullptr;
PyObject* original_capture_end = nullptr;

PyObject* replay(PyObject* graph, PyObject*) { return ModuleHook::instance().replay(graph, original_replay); }

// capture_begin(self, pool=None, ...)
PyObject* capture_begin(PyObject* graph, PyObject* arguments, PyObject* named) {
  ModuleHook::instance().steps().begin_capture();
  Ref bound(PyObject_CallMethod(original_capture_begin, "__get__", "O", graph));
  return bound ? PyObject_Call(bound.get(), arguments, named) : nullptr;
}

PyObject* capture_end(PyObject* graph, PyObject*) {
  ModuleHook::instance().steps().end_capture(graph);
  return PyObject_CallFunctionObjArgs(original_capture_end, graph, nullptr);
}

PyMethodDef replay_method = {"replay", replay, METH_NOARGS, "Replay the CUDA work captured by this graph."};
PyMethodDef capture_begin_method = {"capture_begin", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(capture_begin)),
                                    METH_VARARGS | METH_KEYWORDS, "Begin capturing CUDA work on the current stream."};
PyMethodDef capture_end_method = {"capture_end", capture_end, METH_NOARGS, "End CUDA graph capture on the current stream."};

bool exchange(PyObject* type, PyMethodDef* method, PyObject** original) {
  *original = PyObject_GetAttrString(type, method->ml_name);
  if (!*original) return false;
  Ref ours(PyDescr_NewMethod(reinterpret_cast<PyTypeObject*>(type), method));
  return ours && PyObject_SetAttrString(type, method->ml_name, ours.get()) == 0;
}

PyObject* watch_graphs(PyObject*, PyObject* graph_class) {
  if (original_replay) Py_RETURN_NONE;
  bool good = exchange(graph_class, &replay_method, &original_replay) &&
              exchange(graph_class, &capture_begin_method, &original_capture_begin) &&
              exchange(graph_class, &capture_end_method, &original_capture_end);
  if (!good) return nullptr;
  Py_RETURN_NONE;
}

// ---- imports

// Audit events come in C, at each import that begins: nothing that the program can see waits for it.
PyObject* awaited_name = nullptr;
PyObject* then_call = nullptr;

bool is_imported(PyObject* name) {
  PyObject* module = PyDict_GetItem(PyImport_GetModuleDict(), name);
  Ref dict(module ? PyObject_GenericGetDict(module, nullptr) : nullptr);
  PyObject* spec = dict ? PyDict_GetItemString(dict.get(), "__spec__") : nullptr;
  Ref spec_dict(spec ? PyObject_GenericGetDict(spec, nullptr) : nullptr);
  PyErr_Clear();
  return spec_dict && PyDict_GetItemString(spec_dict.get(), "_initializing") != Py_True;
}

int on_audit_event(const char* event, PyObject*, void*) {
  if (!awaited_name || strcmp(event, "import") != 0 || !is_imported(awaited_name)) return 0;
  Ref name(std::exchange(awaited_name, nullptr)), then(std::exchange(then_call, nullptr));
  Ref result(PyObject_CallFunctionObjArgs(then.get(), nullptr));
  return result ? 0 : -1;
}

PyObject* when_imported(PyObject*, PyObject* arguments) {
  PyObject *name, *then;
  if (!PyArg_ParseTuple(arguments, "UO", &name, &then)) return nullptr;
  using Hook = int (*)(const char*, PyObject*, void*);
  auto* add = reinterpret_cast<int (*)(Hook, void*)>(dlsym(RTLD_DEFAULT, "PySys_AddAuditHook"));
  awaited_name = Ref::borrowed(name).release();
  then_call = Ref::borrowed(then).release();
  if (add && add(on_audit_event, nullptr) == 0) Py_RETURN_NONE;
  if (!PyErr_Occurred()) PyErr_SetString(PyExc_RuntimeError, "no audit hook can be added");
  return nullptr;
}

PyMethodDef methods[] = {
    {"when_imported", when_imported, METH_VARARGS,
     "when_imported(name, then): calls then() when another import begins after this module's has ended. Once a process"},
    {"attached", attached, METH_NOARGS, "attached() -> bool: whether an NVTX tool listens in this process"},
    {"install", install, METH_VARARGS,
     "install(Module, Parameter, on_news, engines): a range for each call of a Module.\n\n"
     "on_news(decodes) is called at the first root that decodes (True), and once one of the modules named in the tuple\n"
     "`engines` is there (False). Raises RuntimeError where the functions of this Python are not laid out as they are known\n"
     "to be. To be called after read_tensors()."},
    {"see_class", see_class, METH_O, "see_class(type): a class derived from Module, which may have a __call__ of its own"},
    {"find_steps", find_steps, METH_VARARGS,
     "find_steps(token_dtypes, is_capturing): step ranges around calls of roots that decode"},
    {"open_step", open_step, METH_VARARGS,
     "open_step(text): a step range of an engine on this thread. From then on calls of roots are no steps."},
    {"close_step", close_step, METH_NOARGS, "close_step(): the end of the thread's step range"},
    {"watch_extensions", watch_extensions, METH_O,
     "watch_extensions(seen): calls seen(module) after each extension module that is loaded from now on"},
    {"read_tensors", read_tensors, METH_VARARGS,
     "read_tensors(Tensor, Parameter, library): how tensors are shown in ranges. library: of torch._C"},
    {"hook_extension_function", hook_extension_function, METH_VARARGS,
     "hook_extension_function(function, name, file) -> bool: a range `name(...) <- file` for each call; False if it has\n"
     "them already. Raises RuntimeError where such functions are not laid out as they are known to be."},
    {"watch_graphs", watch_graphs, METH_O, "watch_graphs(CUDAGraph): step ranges around replays"},
    {nullptr, nullptr, 0, nullptr},
};

PyModuleDef definition = {PyModuleDef_HEAD_INIT, "lamina_hook", "Ranges of calls (see nvtx_hooks/README.md)", -1,
                          methods, nullptr, nullptr, nullptr, nullptr};

}  // namespace
}  // namespace lamina

PyMODINIT_FUNC PyInit_lamina_hook() { return PyModule_Create(&lamina::definition); }
