#include "nvtx_hooks/text/text_table.h"

#include <pthread.h>

namespace lamina {

TextTable& TextTable::instance() {
  static auto& table = *new TextTable;
  return table;
}

// A process that is forked while another thread looks up a text must not find the lock taken forever.
TextTable::TextTable() {
  auto lock = [] { instance().mutex_.lock(); };
  auto unlock = [] { instance().mutex_.unlock(); };
  pthread_atfork(lock, unlock, unlock);
}

const Text* TextTable::find(const CallKey& key) {
  std::lock_guard lock(mutex_);
  if (Signature* signature = signature_of(key)) {
    if (const Text* text = exact_text(*signature, key)) return text;
    return merged_text(*signature, key);
  }
  CallKey name_only;
  name_only.assign_name_only(key);
  Signature* signature = signature_of(name_only);
  return signature ? merged_text(*signature, name_only) : &beyond_bounds_;
}

// Null when there are too many. Those with the name only come on top, up to a bound of their own.
TextTable::Signature* TextTable::signature_of(const CallKey& key) {
  CallKey zeroed;
  zeroed.assign_signature(key);
  StoredKey stored(zeroed);
  auto found = signatures_.find(stored);
  if (found != signatures_.end()) return found->second.get();
  bool is_name = key.size() == key.first_token() + 1 && Token::from_word(key.words()[key.first_token()]).kind == TokenKind::kMore;
  if (is_name ? names_ >= kMaxNames : signatures_.size() - names_ >= kMaxSignatures) return nullptr;
  names_ += is_name;
  return signatures_.emplace(std::move(stored), std::make_unique<Signature>(key)).first->second.get();
}

// Null when the signature has as many as it may have, and this is none of them.
const Text* TextTable::exact_text(Signature& signature, const CallKey& key) {
  for (const Exact& exact : signature.exact) {
    if (exact.key.is(key)) return exact.text.get();
  }
  if (signature.exact.size() >= kMaxExactTexts || all_exact_ >= kMaxAllExactTexts) return nullptr;
  note_differences(signature, key);
  signature.exact.push_back({StoredKey(key), std::make_unique<const Text>(call_text(key))});
  ++all_exact_;
  return signature.exact.back().text.get();
}

// What differs once is `*` from then on, so there are at most as many of these texts as a key has values.
const Text* TextTable::merged_text(Signature& signature, const CallKey& key) {
  if (note_differences(signature, key) || signature.merged.empty()) {
    signature.merged.reserve(signature.merged.size() + 1);
    signature.merged.push_back(std::make_unique<const Text>(call_text(key, signature.differing)));
  }
  return signature.merged.back().get();
}

bool TextTable::note_differences(Signature& signature, const CallKey& key) {
  bool found = false;
  for (size_t i = 0; i < key.size(); ++i) {
    if (key.words()[i] == signature.first.words[i] || signature.differing[i]) continue;
    signature.differing.set(i);
    found = true;
  }
  return found;
}

}  // namespace lamina
