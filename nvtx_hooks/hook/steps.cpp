#include "nvtx_hooks/hook/steps.h"

#include <cstdio>
#include <cstring>

namespace lamina {
namespace {

// Arguments that carry the new tokens, those of an encoder-decoder's decoder first.
constexpr const char* kTokenArguments[] = {"decoder_input_ids", "decoder_inputs_embeds", "input_ids", "inputs_embeds",
                                           "tokens", "idx"};
// Integers that are no tokens.
constexpr const char* kOtherArguments[] = {"attention_mask", "position_ids", "token_type_ids", "cache_position", "labels"};

// 0 for a symbolic size: asked for its value, it would become a guard of the program that is being traced.
long plain_integer(PyObject* number) {
  if (!PyLong_CheckExact(number)) return 0;
  long value = PyLong_AsLong(number);
  if (value == -1 && PyErr_Occurred()) PyErr_Clear();
  return value;
}

bool answers(PyObject* predicate, PyObject* wanted) {
  if (!predicate) return false;
  Ref answer(PyObject_CallObject(predicate, nullptr));
  if (!answer) PyErr_Clear();
  return answer.get() == wanted;
}

bool is_name(PyObject* name, const char* text) { return PyUnicode_CompareWithASCIIString(name, text) == 0; }

bool is_other(PyObject* name) {
  for (const char* other : kOtherArguments) {
    if (is_name(name, other)) return true;
  }
  return false;
}

}  // namespace

void StepFinder::start(const TensorReader& tensors, PyObject* token_dtypes, PyObject* is_capturing) {
  tensors_ = &tensors;
  token_dtypes_ = Ref::borrowed(token_dtypes).release();
  if (is_capturing != Py_None) is_capturing_ = Ref::borrowed(is_capturing).release();
}

bool StepFinder::token_shape(PyObject* argument, bool embeddings, Shape* shape) const {
  Ref dims, dtype;
  if (!tensors_->read(argument, &dtype, &dims)) return false;
  bool ids = PySequence_Contains(token_dtypes_, dtype.get()) == 1;
  if (ids ? PyTuple_Size(dims.get()) != 2 : !embeddings || PyTuple_Size(dims.get()) != 3) return false;
  shape->sequences = plain_integer(PyTuple_GetItem(dims.get(), 0));
  shape->tokens = plain_integer(PyTuple_GetItem(dims.get(), 1));
  return shape->sequences > 0 && shape->tokens > 0;
}

bool StepFinder::find_tokens(PyObject* const* arguments, Py_ssize_t positional, PyObject* names, Shape* shape) const {
  Py_ssize_t named = names ? PyTuple_Size(names) : 0;
  for (const char* wanted : kTokenArguments) {
    for (Py_ssize_t i = 0; i < named; ++i) {
      if (is_name(PyTuple_GetItem(names, i), wanted) && token_shape(arguments[positional + i], true, shape)) return true;
    }
  }
  for (Py_ssize_t i = 1; i < positional; ++i) {
    if (token_shape(arguments[i], false, shape)) return true;
  }
  for (Py_ssize_t i = 0; i < named; ++i) {
    if (!is_other(PyTuple_GetItem(names, i)) && token_shape(arguments[positional + i], false, shape)) return true;
  }
  return false;
}

nvtxStringHandle_t StepFinder::step_of_call(const RangeDomain& domain, Decoding decoding, PyObject* const* arguments,
                                            Py_ssize_t positional, PyObject* names) {
  Shape shape;
  if (stopped_ || !tensors_ || tensors_->is_tracing() || !find_tokens(arguments, positional, names, &shape)) return nullptr;
  Shape& before = before_[arguments[0]];
  // A loop without a cache gives all tokens again, and one more.
  bool grown = decoding == Decoding::kWhole && before.sequences == shape.sequences && before.tokens + 1 == shape.tokens;
  before = shape;
  bool decode = shape.tokens == 1 || grown;
  uint64_t key = static_cast<uint64_t>(shape.sequences) << 32 | static_cast<uint64_t>(shape.tokens) << 1 | (decode ? 1 : 0);
  nvtxStringHandle_t& message = messages_[key];
  if (!message) {
    char text[128];
    long all = shape.sequences * shape.tokens;
    const char* format = decode ? "execute_context_0(0)_generation_%ld(%ld)" : "execute_context_%ld(%ld)_generation_0(0)";
    snprintf(text, sizeof(text), format, shape.sequences, decode ? shape.sequences : all);
    message = domain.message(text);
  }
  if (!answers(is_capturing_, Py_True)) return message;
  captured_ = message;
  return nullptr;
}

void StepFinder::end_capture(PyObject* graph) {
  graphs_.erase(graph);
  if (captured_) graphs_[graph] = captured_;
  captured_ = nullptr;
}

nvtxStringHandle_t StepFinder::step_of_replay(PyObject* graph) const {
  auto found = graphs_.find(graph);
  return !stopped_ && found != graphs_.end() ? found->second : nullptr;
}

}  // namespace lamina
