// What the range of a module call says: class with parameters and instance path. All is read from where CPython and PyTorch
// keep it: no code of the program runs for it, nor Python code of ours, so that neither trace functions, modes and
// metaclasses see anything, nor a signal handler runs in the middle.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "nvtx_hooks/hook/python.h"
#include "nvtx_hooks/hook/tensor_reader.h"

namespace lamina {

enum class Decoding : uint8_t {
  kNone,
  kCached,  // its forward takes a cache: after the prompt one token at a time
  kWhole,   // it gives a score for each token of its vocabulary: a loop may give it all tokens again, and one more
};

// Where a child or parameter hangs. It keeps none of them alive.
struct Place {
  Ref parent;  // weak reference; null: nowhere
  Ref key;
};
// What hangs there now, borrowed; null if that is gone.
PyObject* child_at(PyObject* parent, PyObject* key);

struct Description {
  std::string name;  // `Linear(weight=bfloat16[6144, 4096])`
  std::string path;  // `LlamaForCausalLM.model.layers.0.self_attn.qkv_proj`
  Decoding decoding = Decoding::kNone;
  Place place;
};

// A module whose call is open.
struct OpenModule {
  PyObject* module;
  const std::string* path;
};

class ModuleDescriber {
 public:
  explicit ModuleDescriber(const TensorReader& tensors) : tensors_(tensors) {}

  // `callers`: innermost first. The path is that of the innermost one which has the module below it.
  Description describe(PyObject* module, const std::vector<OpenModule>& callers);
  // The module was freed: the number that told it from other roots of its class is free again.
  void forget_root(const PyObject* module);

  // The first parameter at or below the module, as a place, for seeing later that all of it was converted.
  Place first_parameter(PyObject* module) const;
  PyObject* dtype_at(const Place& place) const;  // borrowed, dtypes live for ever; null if there is none

 private:
  struct Root {
    std::string name;
    size_t number;
  };

  std::string parameters_text(PyObject* dict) const;
  std::string tensor_text(PyObject* tensor) const;
  std::string root_path(PyObject* module, PyObject* dict, const std::string& name);

  const TensorReader& tensors_;
  std::unordered_map<const PyObject*, Root> roots_;
  std::unordered_map<std::string, std::vector<bool>> numbers_;  // by class: which are taken
};

}  // namespace lamina
