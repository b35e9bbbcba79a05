// Steps found by themselves: a root module that decodes is called with token ids, and their shape tells prefill from
// decode. A replay of a CUDA graph is a step of the kind that was captured.
#pragma once

#include <cstdint>
#include <unordered_map>

#include "nvtx_hooks/hook/python.h"
#include "nvtx_hooks/hook/range.h"

namespace lamina {

class StepFinder {
 public:
  // What the calls are judged by: torch.Tensor, the dtypes of token ids, two callables: the state of torch.jit.trace (None
  // outside; sizes read inside would go into the traced graph) and whether the current stream is capturing (or None). Off
  // until then.
  void start(PyObject* tensor_class, PyObject* token_dtypes, PyObject* tracing_state, PyObject* is_capturing);

  // The steps of this process are known otherwise.
  void stop() { stopped_ = true; }

  // The range of the step that this call of a root is: execute_context_…; null if it is none, or a capture.
  nvtxStringHandle_t step_of_call(const RangeDomain& domain, PyObject* const* arguments, Py_ssize_t positional, PyObject* names);

  // The captured step belongs to this graph object from now on.
  void end_capture(PyObject* graph);
  nvtxStringHandle_t step_of_replay(PyObject* graph) const;

 private:
  struct Shape {
    long sequences = 0;
    long tokens = 0;  // of each sequence
  };
  bool find_tokens(PyObject* const* arguments, Py_ssize_t positional, PyObject* names, Shape* shape) const;
  bool token_shape(PyObject* argument, bool embeddings, Shape* shape) const;

  bool stopped_ = false;
  PyObject* tensor_class_ = nullptr;
  PyObject* token_dtypes_ = nullptr;
  PyObject* tracing_state_ = nullptr;
  PyObject* is_capturing_ = nullptr;
  std::unordered_map<PyObject*, Shape> before_;  // by root
  std::unordered_map<uint64_t, nvtxStringHandle_t> messages_;
  nvtxStringHandle_t captured_ = nullptr;
  std::unordered_map<PyObject*, nvtxStringHandle_t> graphs_;
};

}  // namespace lamina
