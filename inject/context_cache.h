// The contexts that a thread has asked for before, by parent and name. A step of a large model has some ten thousand of
// them, one for each op of each layer; pages that are not touched cost nothing.
#pragma once

#include <cstddef>
#include <cstdint>

#include "inject/callback_memory.h"

namespace lamina {

class ContextCache {
 public:
  ContextCache() : entries_(static_cast<Entry*>(mapped_pages()->allocate(kBytes))) {}
  ~ContextCache() { mapped_pages()->deallocate(entries_, kBytes); }
  ContextCache(const ContextCache&) = delete;
  ContextCache& operator=(const ContextCache&) = delete;

  // 0 if it is not there: that is the root, which is no child.
  uint32_t find(uint64_t key) const {
    const Entry* set = set_of(key);
    for (size_t i = 0; i < kWays; ++i) {
      if (set[i].key == key) return set[i].context;
    }
    return 0;
  }
  void add(uint64_t key, uint32_t context) {
    Entry* set = set_of(key);
    for (size_t i = kWays - 1; i > 0; --i) set[i] = set[i - 1];
    set[0] = {key, context};
  }

 private:
  struct Entry {
    uint64_t key;  // parent << 32 | name; 0 for none
    uint32_t context;
  };

  // Keys that share a place do not push each other out over and over; a set of them is one cache line.
  static constexpr size_t kWays = 4;
  static constexpr int kSetBits = 13;
  static constexpr size_t kBytes = (sizeof(Entry) * kWays) << kSetBits;

  Entry* set_of(uint64_t key) const { return entries_ + kWays * (key * 0x9e3779b97f4a7c15u >> (64 - kSetBits)); }

  Entry* const entries_;
};

}  // namespace lamina
