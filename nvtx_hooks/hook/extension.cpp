// The Python module `lamina_hook`: what lamina_torch.py calls to install the hook.
#include "nvtx_hooks/hook/extension_calls.h"
#include "nvtx_hooks/hook/module_hook.h"

namespace lamina {
namespace {

PyObject* attached(PyObject*, PyObject*) { return PyBool_FromLong(ModuleHook::instance().attached()); }

PyObject* install(PyObject*, PyObject* arguments) {
  PyObject *module_class, *parameter_class, *describe;
  if (!PyArg_ParseTuple(arguments, "OOO", &module_class, &parameter_class, &describe)) return nullptr;
  if (!ModuleHook::instance().install(module_class, parameter_class, describe)) return nullptr;
  Py_RETURN_NONE;
}

PyObject* see_class(PyObject*, PyObject* type) {
  if (PyType_Check(type)) ModuleHook::instance().see_class(reinterpret_cast<PyTypeObject*>(type));
  Py_RETURN_NONE;
}

PyObject* find_steps(PyObject*, PyObject* arguments) {
  PyObject *tensor_class, *token_dtypes, *tracing_state, *is_capturing;
  if (!PyArg_ParseTuple(arguments, "OOOO", &tensor_class, &token_dtypes, &tracing_state, &is_capturing)) return nullptr;
  ModuleHook::instance().steps().start(tensor_class, token_dtypes, tracing_state, is_capturing);
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
PyObject* original_capture_end = nullptr;

PyObject* replay(PyObject* graph, PyObject*) { return ModuleHook::instance().replay(graph, original_replay); }

PyObject* capture_end(PyObject* graph, PyObject*) {
  ModuleHook::instance().steps().end_capture(graph);
  return PyObject_CallFunctionObjArgs(original_capture_end, graph, nullptr);
}

PyMethodDef replay_method = {"replay", replay, METH_NOARGS, "Replay the CUDA work captured by this graph."};
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
              exchange(graph_class, &capture_end_method, &original_capture_end);
  if (!good) return nullptr;
  Py_RETURN_NONE;
}

PyMethodDef methods[] = {
    {"attached", attached, METH_NOARGS, "attached() -> bool: whether an NVTX tool listens in this process"},
    {"install", install, METH_VARARGS,
     "install(Module, Parameter, describe): a range for each call of a Module.\n\n"
     "describe(module, [(caller, path), ...]) -> (class, path, decodes). Raises RuntimeError where the functions of this\n"
     "Python are not laid out as they are known to be."},
    {"see_class", see_class, METH_O, "see_class(type): a class derived from Module, which may have a __call__ of its own"},
    {"find_steps", find_steps, METH_VARARGS,
     "find_steps(Tensor, token_dtypes, tracing_state, is_capturing): step ranges around calls of roots that decode"},
    {"open_step", open_step, METH_VARARGS,
     "open_step(text): a step range of an engine on this thread. From then on calls of roots are no steps."},
    {"close_step", close_step, METH_NOARGS, "close_step(): the end of the thread's step range"},
    {"watch_extensions", watch_extensions, METH_O,
     "watch_extensions(seen): calls seen(module) after each extension module that is loaded from now on"},
    {"read_tensors", read_tensors, METH_VARARGS,
     "read_tensors(Tensor, Parameter, library): how tensors are shown in ranges of extension functions. library: of torch._C"},
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
