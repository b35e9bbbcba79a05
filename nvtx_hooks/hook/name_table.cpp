#include "nvtx_hooks/hook/name_table.h"

namespace lamina {

void NameTable::insert(const Entry& entry) {
  size_t i = hash(entry.module);
  while (entries_[i & mask_].module) ++i;
  entries_[i & mask_] = entry;
}

void NameTable::add(PyObject* module, const ModuleName* caller, const ModuleName* name, Ref life, Place place) {
  Entry added{module, caller, name, place.parent.release(), place.key.release(), life.release()};
  for (size_t i = hash(module); entries_[i & mask_].module; ++i) {
    Entry& entry = entries_[i & mask_];
    if (entry.module == module && entry.caller == caller) return release({std::exchange(entry, added)});
  }
  if (++count_ * 2 > entries_.size()) {
    std::vector<Entry> before(entries_.size() * 2);
    before.swap(entries_);
    mask_ = entries_.size() - 1;
    for (const Entry& entry : before) {
      if (entry.module) insert(entry);
    }
  }
  insert(added);
}

// What lies behind a hole must be put in again: a search ends at the first one.
void NameTable::forget(const PyObject* module) {
  std::vector<Entry> kept, forgotten;
  size_t i = hash(module);
  for (; entries_[i & mask_].module; ++i) {
    Entry& entry = entries_[i & mask_];
    (entry.module == module ? forgotten : kept).push_back(entry);
    entry = Entry{};
  }
  count_ -= forgotten.size();
  for (const Entry& entry : kept) insert(entry);
  release(forgotten);
}

void NameTable::forget_all() {
  std::vector<Entry> forgotten(entries_.size());
  forgotten.swap(entries_);
  count_ = 0;
  release(forgotten);
}

// Last, when the table is whole again: code of the program may run.
void NameTable::release(const std::vector<Entry>& entries) {
  for (const Entry& entry : entries) {
    Py_XDECREF(entry.parent);
    Py_XDECREF(entry.key);
    Py_XDECREF(entry.life);
  }
}

}  // namespace lamina
