// The texts of all calls, shared by the threads. Their number is bounded, though a model whose inputs grow (a KV cache) has
// no end of shapes: of each signature (what is called with the kinds of its arguments) so many texts are exact, and then one has `*`
// for what was seen to differ.
#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "nvtx_hooks/text/call_key.h"
#include "nvtx_hooks/text/call_text.h"
#include "nvtx_hooks/text/nvtx.h"

namespace lamina {

class TextTable {
 public:
  static constexpr size_t kMaxExactTexts = 64;        // of one signature
  static constexpr size_t kMaxAllExactTexts = 65536;  // of all
  static constexpr size_t kMaxSignatures = 8192;      // then calls are told apart by their names only
  static constexpr size_t kMaxNames = 4096;           // ... by so many of them

  // Never destroyed: threads may outlive the end of main.
  static TextTable& instance();

  const Text* find(const CallKey& key);

 private:
  TextTable();

  struct Exact {
    StoredKey key;
    std::unique_ptr<const Text> text;
  };
  struct Signature {
    explicit Signature(const CallKey& key) : first(key) {}

    StoredKey first;
    Wildcards differing;
    std::vector<Exact> exact;
    std::vector<std::unique_ptr<const Text>> merged;  // the last is the one in use
  };
  struct Hash {
    size_t operator()(const StoredKey& key) const { return key.hash; }
  };
  struct Equal {
    bool operator()(const StoredKey& a, const StoredKey& b) const { return a.hash == b.hash && a.words == b.words; }
  };

  Signature* signature_of(const CallKey& key);
  const Text* exact_text(Signature& signature, const CallKey& key);
  const Text* merged_text(Signature& signature, const CallKey& key);
  static bool note_differences(Signature& signature, const CallKey& key);

  std::mutex mutex_;
  std::unordered_map<StoredKey, std::unique_ptr<Signature>, Hash, Equal> signatures_;
  size_t names_ = 0;
  size_t all_exact_ = 0;
  const Text beyond_bounds_{"(one of too many calls)"};
};

}  // namespace lamina
