#include "inject/known_callers.h"

#include <cstring>

#include "inject/callback_memory.h"

namespace lamina {

// Pages that nothing lies in yet cost nothing. All is zero: no frame lies at a null place.
KnownCallers::KnownCallers()
    : entries_(static_cast<Entry*>(mapped_pages()->allocate(kEntries * sizeof(Entry)))),
      latest_(static_cast<uint32_t*>(mapped_pages()->allocate(kLatest * sizeof(uint32_t)))) {}

KnownCallers::~KnownCallers() {
  mapped_pages()->deallocate(entries_, kEntries * sizeof(Entry));
  mapped_pages()->deallocate(latest_, kLatest * sizeof(uint32_t));
}

uint32_t& KnownCallers::latest_of(const SavedReturn& frame) const {
  constexpr uint64_t kGoldenRatio = 0x9e3779b97f4a7c15;
  uint64_t hash = (reinterpret_cast<uintptr_t>(frame.location) ^ frame.address << 20) * kGoldenRatio;
  return latest_[hash >> (64 - kLatestBits)];
}

KnownCallers::Chain KnownCallers::find(const SavedReturn& frame, std::span<SavedReturn> callers) const {
  Chain chain;
  const Entry& known = entries_[latest_of(frame)];
  if (known.frame != frame) return chain;
  uint32_t at = known.caller;
  while (at > kUnknown && chain.size < callers.size()) {
    const SavedReturn& caller = entries_[at].frame;
    if (*caller.location != caller.address) return chain;
    callers[chain.size++] = caller;
    at = entries_[at].caller;
  }
  chain.complete = at == kNone;
  chain.enough = chain.complete || chain.size == callers.size();
  chain.entry = latest_of(frame);
  if (chain.complete) chain.node = known.node;
  return chain;
}

uint32_t KnownCallers::add(const SavedReturn& frame, uint32_t caller, uint32_t node) {
  uint32_t& latest = latest_of(frame);
  const Entry& known = entries_[latest];
  if (known.frame == frame && known.caller == caller && known.node == node) return latest;
  entries_[used_] = {frame, caller, node};
  return latest = used_++;
}

void KnownCallers::prepare(uint32_t generation, size_t frames) {
  if (generation == generation_ && used_ + frames <= kEntries) return;
  clear();
  generation_ = generation;
}

void KnownCallers::clear() {
  memset(latest_, 0, kLatest * sizeof(uint32_t));
  used_ = kUnknown + 1;
}

}  // namespace lamina
