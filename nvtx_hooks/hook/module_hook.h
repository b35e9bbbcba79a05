// One range for each call of an nn.Module.
#pragma once

#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "nvtx_hooks/hook/function_hook.h"
#include "nvtx_hooks/hook/module_describer.h"
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

  // `on_news(decodes)` is called with the first root that decodes (True), and when one of `engines`, names of Python modules,
  // has been imported (False). False with a Python error when the functions of `module_class` can not be hooked.
  bool install(PyObject* module_class, PyObject* parameter_class, PyObject* on_news, PyObject* engines);
  StepFinder& steps() { return steps_; }
  const RangeDomain& domain() const { return domain_; }

  // A class of modules that may have a __call__ of its own, which is then hooked too: it need not call Module's, and where it
  // does, some interpreters (3.11) do not go through the function's pointer.
  void see_class(PyTypeObject* type);

  // A module is called: arguments[0]. `own`: by the __call__ of its own class.
  PyObject* call(bool own, PyObject* function, PyObject* const* arguments, size_t count_and_flag, PyObject* names);
  // After `module` got another child or parameter `value`.
  void changed(PyObject* module, PyObject* value);
  void freed(const PyObject* module);

  // CUDAGraph.replay(graph), whose own function is `original`.
  PyObject* replay(PyObject* graph, PyObject* original);

 private:
  // A module call that is going on. Not on the thread's stack, which greenlets move away.
  struct Call {
    Call* caller;
    PyObject* module;
    const ModuleName* name;
    PyObject* own;  // the __call__ of its own class that it is in, until that goes on to Module's; else null
  };

  ModuleHook();
  static Call* open(PyObject* module, PyObject* own);
  static void close(Call* call);
  const ModuleName* make_name(PyObject* module, const Call* caller);
  const ModuleName* intern(const Description& description);
  void keep(PyObject* module, const ModuleName* caller, const ModuleName* name, Place place);
  void forget_if_converted(PyObject* module);
  bool tell_news(const ModuleName* name);
  bool tell(PyObject* news);

  static thread_local Call* innermost;
  static thread_local Call* unused;  // calls that are over, for those to come

  RangeDomain domain_;
  NameTable names_;
  StepFinder steps_;
  PyTypeObject* module_class_ = nullptr;
  PyTypeObject* parameter_class_ = nullptr;
  PyObject* module_call_ = nullptr;                // Module.__call__
  std::unordered_map<PyTypeObject*, Ref> seen_classes_;  // weak references: another class may come to lie there
  PyObject* on_news_ = nullptr;
  std::vector<Ref> engines_;  // not imported yet
  bool decoding_seen_ = false;
  ModuleDescriber describer_;
  // By root: its first parameter, and the dtype of that when its modules were named.
  struct Converted {
    Place parameter;
    PyObject* dtype;
  };
  std::unordered_map<const PyObject*, Converted> dtypes_;
  std::unordered_map<std::string, ModuleName*> by_text_;
};

}  // namespace lamina
