#include "nvtx_hooks/hook/name_table.h"

namespace lamina {

void NameTable::insert(const Entry& entry) {
  size_t i = hash(entry.module);
  while (entries_[i & mask_].module) ++i;
  entries_[i & mask_] = entry;
}

void NameTable::add(PyObject* module, const ModuleName* caller, const ModuleName* name, Ref life) {
  if (++count_ * 2 > entries_.size()) {
    std::vector<Entry> before(entries_.size() * 2);
    before.swap(entries_);
    mask_ = entries_.size() - 1;
    for (const Entry& entry : before) {
      if (entry.module) insert(entry);
    }
  }
  insert({module, caller, name, life.release()});
}

// What lies behind a hole must be put in again: a search ends at the first one.
void NameTable::forget(const PyObject* module) {
  std::vector<Entry> kept;
  std::vector<PyObject*> lives;
  size_t i = hash(module);
  for (; entries_[i & mask_].module; ++i) {
    Entry& entry = entries_[i & mask_];
    if (entry.module == module) {
      lives.push_back(entry.life);
    } else {
      kept.push_back(entry);
    }
    entry = Entry{};
  }
  count_ -= lives.size();
  for (const Entry& entry : kept) insert(entry);
  for (PyObject* life : lives) Py_XDECREF(life);
}

}  // namespace lamina
