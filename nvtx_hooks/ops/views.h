// Ops that launch nothing: views and allocations. Half of a decode step's ops are such; they get no ranges, as nothing would
// lie in them. Should one copy after all (resolve_conj of a conjugate), the op that does so is inside of it, with its own.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace lamina {

bool is_view(std::string_view name);

// What is_view said, by where the name lies: that is the same place for each call of an op.
class ViewCache {
 public:
  bool is_view(const char* name) {
    Entry& entry = entries_[reinterpret_cast<uintptr_t>(name) / 16 % kEntries];
    if (entry.name != name) [[unlikely]] entry = {name, lamina::is_view(name)};
    return entry.is_view;
  }

 private:
  static constexpr size_t kEntries = 512;
  struct Entry {
    const char* name = nullptr;
    bool is_view = false;
  };
  std::array<Entry, kEntries> entries_;
};

}  // namespace lamina
