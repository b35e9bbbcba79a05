// One range for each call of an nn.Module.
#pragma once

#include <string>
#include <unordered_map>

#include "nvtx_hooks/hook/function_hook.h"
#include "nvtx_hooks/hook/name_table.h"
#include "nvtx_hooks/hook/range.h"
#include "nvtx_hooks/hook/steps.h"

namespace lamina {

// All of it is used under the GIL.
class ModuleHook {
 public:
  // Never destroyed: Python functions point to it as long as the process lives.
  static ModuleHook& instance();

  bool attached() const { return domain_.attached(); }

  // `describe(module, callers)` gives (class with parameters, path, decodes); `callers`: [(module, path)], innermost first.
  // False with a Python error when the functions of `module_class` can not be hooked.
  bool install(PyObject* module_class, PyObject* parameter_class, PyObject* describe);
  StepFinder& steps() { return steps_; }
  const RangeDomain& domain() const { return domain_; }

  // A class of modules that may have a __call__ of its own, which is then hooked too: it need not call Module's, and where it
  // does, some interpreters (3.11) do not go through the function's pointer.
  void see_class(PyTypeObject* type);

  // A module is called: arguments[0]. `own`: by the __call__ of its own class.
  PyObject* call(bool own, PyObject* function, PyObject* const* arguments, size_t count_and_flag, PyObject* names);
  // After `module` got another child or parameter `value`.
  void changed(PyObject* module, PyObject* value);
  void forget(const PyObject* module) { names_.forget(module); }

  // CUDAGraph.replay(graph), whose own function is `original`.
  PyObject* replay(PyObject* graph, PyObject* original);

 private:
  // A module call that is going on. They lie on the stack of their thread.
  struct Call {
    Call* caller;
    PyObject* module;
    const ModuleName* name;
    PyObject* own;  // the __call__ of its own class that it is in, until that goes on to Module's; else null
  };

  ModuleHook() = default;
  const ModuleName* make_name(PyObject* module, const Call* caller);
  Ref ask_for_description(PyObject* module, const Call* caller);
  const ModuleName* intern(PyObject* description);
  void keep(PyObject* module, const ModuleName* caller, const ModuleName* name);

  static thread_local Call* innermost;

  RangeDomain domain_;
  NameTable names_;
  StepFinder steps_;
  PyTypeObject* module_class_ = nullptr;
  PyTypeObject* parameter_class_ = nullptr;
  PyObject* module_call_ = nullptr;                // Module.__call__
  std::unordered_map<PyTypeObject*, Ref> seen_classes_;  // weak references: another class may come to lie there
  PyObject* describe_ = nullptr;
  std::unordered_map<std::string, ModuleName*> by_text_;
};

}  // namespace lamina
