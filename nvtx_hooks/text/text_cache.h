// The texts that one thread used last. A hit takes no lock and allocates nothing.
#pragma once

#include <algorithm>
#include <array>
#include <memory>

#include "nvtx_hooks/text/call_key.h"
#include "nvtx_hooks/text/nvtx.h"
#include "nvtx_hooks/text/text_table.h"

namespace lamina {

class TextCache {
 public:
  const Text* find(const CallKey& key) {
    Set& set = sets_[key.hash() % kSets];
    for (Entry& entry : set) {
      if (key.equals(entry.hash, entry.words.get(), entry.size)) [[likely]] return entry.text;
    }
    return miss(set, key);
  }

 private:
  static constexpr size_t kSets = 1024;

  struct Entry {
    uint64_t hash = 0;
    size_t size = 0;  // no key is empty
    std::unique_ptr<uint64_t[]> words;
    const Text* text = nullptr;
  };
  using Set = std::array<Entry, 2>;

  // The older entry makes way.
  [[gnu::cold]] [[gnu::noinline]] static const Text* miss(Set& set, const CallKey& key) {
    const Text* text = TextTable::instance().find(key);
    std::unique_ptr<uint64_t[]> words(new uint64_t[key.size()]);
    std::copy_n(key.words(), key.size(), words.get());
    set[1] = std::move(set[0]);
    set[0] = {key.hash(), key.size(), std::move(words), text};
    return text;
  }

  std::array<Set, kSets> sets_;
};

}  // namespace lamina
