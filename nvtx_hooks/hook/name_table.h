// Which range a module's call is: found by the module and the range of the call that it is in. Guarded by the GIL.
#pragma once

#include <nvtx3/nvToolsExt.h>

#include <cstdint>
#include <string>
#include <vector>

#include "nvtx_hooks/hook/module_describer.h"
#include "nvtx_hooks/hook/python.h"

namespace lamina {

// One for each text; never freed, since NVTX keeps registered strings too. A model that is made anew gets the same ones.
struct ModuleName {
  nvtxStringHandle_t message;
  std::string path;
  Decoding decoding;  // of a root
};

class NameTable {
 public:
  // Null if it has none yet, or hangs in another place than it did.
  const ModuleName* find(const PyObject* module, const ModuleName* caller) const {
    for (size_t i = hash(module);; ++i) {
      const Entry& entry = entries_[i & mask_];
      if (entry.module == module && entry.caller == caller) return is_in_place(entry) ? entry.name : nullptr;
      if (!entry.module) return nullptr;
    }
  }
  // In place of an entry of the same two. `life`: the weak reference whose callback calls forget().
  void add(PyObject* module, const ModuleName* caller, const ModuleName* name, Ref life, Place place);
  // The module was freed, or is another now.
  void forget(const PyObject* module);
  void forget_all();

 private:
  struct Entry {
    const PyObject* module = nullptr;
    const ModuleName* caller = nullptr;
    const ModuleName* name = nullptr;
    PyObject* parent = nullptr;  // as Place
    PyObject* key = nullptr;
    PyObject* life = nullptr;
  };

  // Lists and dicts of modules change without a __setattr__.
  static bool is_in_place(const Entry& entry) {
    return !entry.parent || child_at(entry.parent, entry.key) == entry.module;
  }
  static void release(const std::vector<Entry>& entries);

  // By the module alone, so that all entries of one lie together. Objects are 16 bytes apart at least.
  static size_t hash(const PyObject* module) { return (reinterpret_cast<uintptr_t>(module) >> 4) * 0x9e3779b97f4a7c15u >> 20; }
  void insert(const Entry& entry);

  std::vector<Entry> entries_{1024};
  size_t mask_ = 1023;
  size_t count_ = 0;
};

}  // namespace lamina
