// Dynamo would compile Python code that runs while its frame evaluation is on. It is off in here, as in
// torch._dynamo.disable.
#pragma once

#include "nvtx_hooks/hook/python.h"

namespace lamina {

class DynamoAside {
 public:
  DynamoAside() {
    PyObject* modules = PyImport_GetModuleDict();
    PyObject* eval_frame = PyDict_GetItemString(modules, "torch._C._dynamo.eval_frame");
    if (!eval_frame) return;
    set_ = Ref(PyObject_GetAttrString(eval_frame, "set_eval_frame"));
    if (set_) before_ = Ref(PyObject_CallFunctionObjArgs(set_.get(), Py_None, nullptr));
    if (!before_) PyErr_Clear();
  }
  ~DynamoAside() {
    if (!before_) return;
    PyObject *type, *value, *traceback;  // an exception may be on its way
    PyErr_Fetch(&type, &value, &traceback);
    Ref result(PyObject_CallFunctionObjArgs(set_.get(), before_.get(), nullptr));
    PyErr_Restore(type, value, traceback);
  }
  DynamoAside(const DynamoAside&) = delete;
  DynamoAside& operator=(const DynamoAside&) = delete;

 private:
  Ref set_;
  Ref before_;
};

}  // namespace lamina
