// Which range a module's call is: found by the module and the range of the call that it is in. Guarded by the GIL.
#pragma once

#include <nvtx3/nvToolsExt.h>

#include <cstdint>
#include <vector>

#include "nvtx_hooks/hook/python.h"

namespace lamina {

// One for each text; never freed, since NVTX keeps registered strings too. A model that is made anew gets the same ones.
struct ModuleName {
  nvtxStringHandle_t message;
  PyObject* path;  // str
  bool decodes;    // a root that takes tokens and gives those that follow
};

class NameTable {
 public:
  const ModuleName* find(const PyObject* module, const ModuleName* caller) const {
    for (size_t i = hash(module);; ++i) {
      const Entry& entry = entries_[i & mask_];
      if (entry.module == module && entry.caller == caller) return entry.name;
      if (!entry.module) return nullptr;
    }
  }
  // Keeps `life`, the weak reference whose callback calls forget().
  void add(PyObject* module, const ModuleName* caller, const ModuleName* name, Ref life);
  // The module was freed, or is another now.
  void forget(const PyObject* module);

 private:
  struct Entry {
    const PyObject* module = nullptr;
    const ModuleName* caller = nullptr;
    const ModuleName* name = nullptr;
    PyObject* life = nullptr;
  };

  // By the module alone, so that all entries of one lie together. Objects are 16 bytes apart at least.
  static size_t hash(const PyObject* module) { return (reinterpret_cast<uintptr_t>(module) >> 4) * 0x9e3779b97f4a7c15u >> 20; }
  void insert(const Entry& entry);

  std::vector<Entry> entries_{1024};
  size_t mask_ = 1023;
  size_t count_ = 0;
};

}  // namespace lamina
