// Steps found by themselves: a root module that decodes is called with token ids, and their shape tells prefill from
// decode. A replay of a CUDA graph is a step of the kind that was captured.
#pragma once

#include <cstdint>
#include <unordered_map>

#include "nvtx_hooks/hook/module_describer.h"
#include "nvtx_hooks/hook/python.h"
#include "nvtx_hooks/hook/range.h"

namespace lamina {

class StepFinder {
 public:
  // What the calls are judged by: tensors, the dtypes of token ids, and a callable, whether the current stream is capturing
  // (or None). Off until then.
  void start(const TensorReader& tensors, PyObject* token_dtypes, PyObject* is_capturing);

  // The steps of this process are known otherwise.
  void stop() { stopped_ = true; }

  // The range of the step that this call of a root is: execute_context_…; null if it is none, or a capture.
  nvtxStringHandle_t step_of_call(const RangeDomain& domain, Decoding decoding, PyObject* const* arguments, Py_ssize_t positional, PyObject* names);

  // A graph is captured from here on; what was before it is none of it.
  void begin_capture() { captured_ = nullptr; }
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
  const TensorReader* tensors_ = nullptr;
  PyObject* token_dtypes_ = nullptr;
  PyObject* is_capturing_ = nullptr;
  std::unordered_map<PyObject*, Shape> before_;  // by root
  std::unordered_map<uint64_t, nvtxStringHandle_t> messages_;
  nvtxStringHandle_t captured_ = nullptr;
  std::unordered_map<PyObject*, nvtxStringHandle_t> graphs_;
};

}  // namespace lamina
