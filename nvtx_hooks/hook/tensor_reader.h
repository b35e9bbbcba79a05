// dtype and sizes of PyTorch's tensors, without linking to PyTorch, and without running code of the program.
#pragma once

#include <cstdint>
#include <string>

#include "nvtx_hooks/hook/python.h"
#include "nvtx_hooks/text/call_key.h"

namespace lamina {

class TensorReader {
 public:
  // torch.Tensor and Parameter, and the file of torch._C. Until then, and where this PyTorch lacks what is asked for, tensors
  // are objects like others.
  void start(PyObject* tensor_class, PyObject* parameter_class, const char* library);

  // Of these very classes: those derived may have Python code for everything.
  bool is_tensor(PyObject* object) const { return Py_TYPE(object) == tensor_type_ || Py_TYPE(object) == parameter_type_; }
  void add(CallKey& key, PyObject* tensor) const;

  // Also of classes derived from Tensor, past what they make of it. False if it is no tensor, or has neither.
  bool read(PyObject* tensor, Ref* dtype, Ref* sizes) const;
  static std::string dtype_name(PyObject* dtype);

  // torch.jit.trace would take the sizes that are read meanwhile into its graph.
  class TracingAside {
   public:
    explicit TracingAside(const TensorReader& reader);
    ~TracingAside();
    TracingAside(const TracingAside&) = delete;
    TracingAside& operator=(const TracingAside&) = delete;

   private:
    const TensorReader& reader_;
    Ref state_;  // null: nothing is traced
  };
  bool is_tracing() const { return tracing_state_ && *tracing_state_() != nullptr; }

 private:
  // A property that is implemented in C.
  class Getter {
   public:
    bool find(PyObject* type, const char* name);
    Ref get(PyObject* object) const;

   private:
    PyObject* descriptor_ = nullptr;
    descrgetfunc get_ = nullptr;
  };
  class ModesAside;

  static void add_sizes(CallKey& key, uint8_t dtype, PyObject* sizes);

  PyTypeObject* tensor_type_ = nullptr;
  PyTypeObject* parameter_type_ = nullptr;
  PyObject* get_tracing_state_ = nullptr;  // functions of torch._C
  PyObject* set_tracing_state_ = nullptr;
  Getter sizes_, dtype_;
  void* const* (*tracing_state_)() = nullptr;  // torch::jit::tracer: a shared pointer
  int64_t (*modes_)() = nullptr;               // the program's __torch_function__ modes
  int (*disabled_)() = nullptr;                // ... whether they are set aside: not in all versions
  void (*set_disabled_)(int) = nullptr;
};

}  // namespace lamina
