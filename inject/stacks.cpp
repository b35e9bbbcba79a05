#include "inject/stacks.h"

#include <algorithm>
#include <bit>

#include "inject/clock.h"
#include "inject/log.h"

namespace lamina {

using namespace format;

bool Stacks::open() {
  on_ = unwinder_.open();
  if (!on_) log_line("no call stacks: libunwind.so.8 was not found; install it, or put it beside liblamina_inject.so");
  return on_;
}

// ---- on the program's threads

uint32_t Stacks::unwind(const uintptr_t* first, const char* kernel, KnownCallers& known, std::span<SavedReturn> frames,
                        size_t* count) {
  uint32_t kernel_id = kernel ? definitions_.kernel_name(kernel)->id : 0;
  uint64_t begin = host_now();
  // Also while libunwind goes through the list of libraries: a fork meanwhile would leave that locked in the child.
  std::lock_guard lock(mutex_);
  notice_unloads();
  known.prepare(generation(), frames.size());
  Unwinder::Unwound unwound = unwinder_.unwind(first, frames, known);
  *count = unwound.size;
  uint32_t stack = *count > 0 ? make_known(frames.data(), unwound, kernel_id, known) : 0;
  uint64_t us = (host_now() - begin) / 1000;
  durations_[std::min<size_t>(std::bit_width(us), durations_.size() - 1)].fetch_add(1, std::memory_order_relaxed);
  return stack;
}

void Stacks::notice_unloads() {
  modules_.refresh();
  if (modules_.unloads() == known_unloads_) return;
  known_unloads_ = modules_.unloads();
  places_.clear();
  unwinder_.forget_code();
  forget_addresses();
}

uint32_t Stacks::make_known(const SavedReturn* frames, const Unwinder::Unwound& unwound, uint32_t kernel,
                            KnownCallers& known) {
  uint32_t node = unwound.node;
  uint32_t caller = unwound.caller;
  for (size_t i = node != 0 ? unwound.new_size : unwound.size; i-- > 0;) {
    uint32_t place = place_of(frames[i].address);
    node = place != 0 ? node_of(node, place, i == 0 ? kernel : 0) : 0;
    if (node == 0) {
      ++lost_;
      return 0;
    }
    // The innermost one is no caller.
    if (i > 0 && i < unwound.new_size) caller = known.add(frames[i], caller, unwound.complete ? node : 0);
  }
  return node;
}

Stacks::Cost Stacks::cost() const {
  Cost cost;
  for (const auto& count : durations_) cost.count += count.load();
  uint64_t seen = 0;
  for (size_t i = 0; i < durations_.size(); ++i) {
    if (durations_[i].load() == 0) continue;
    if (seen * 2 < cost.count) cost.median_us = uint64_t{1} << i;
    if (seen * 100 < cost.count * 99) cost.slow_us = uint64_t{1} << i;
    seen += durations_[i].load();
  }
  return cost;
}

uint32_t Stacks::place_of(uintptr_t return_address) {
  // The call is before the address: it may be the last of its function.
  uintptr_t address = return_address - 1;
  auto [known, added] = places_.try_emplace(return_address, 0);
  if (!added) return known->second;
  if (place_count_ == kMaxPlaces) return 0;
  const LoadedModules::Module* module = modules_.find(address);
  known->second = ++place_count_;
  Place place{known->second, 0, 0, {}, address};
  if (module) {
    place.path = module->path;
    place.module = definitions_.string(module->path)->id;
    place.build_id = module->build_id.empty() ? 0 : definitions_.string(module->build_id)->id;
    place.offset = address - module->bias;
  }
  new_places_.push_back(place);
  return known->second;
}

uint32_t Stacks::node_of(uint32_t parent, uint32_t place, uint32_t kernel) {
  auto find_or_add = [&](auto& ids, uint64_t key) -> uint32_t {
    auto [known, added] = ids.try_emplace(key, 0);
    if (!added) return known->second;
    if (node_count_ == kMaxNodes) return 0;
    known->second = ++node_count_;
    definitions_.add_stack(known->second, StackRecord{{}, parent, place, kernel, 0});
    return known->second;
  };
  uint64_t key = static_cast<uint64_t>(parent) << 32 | place;
  if (kernel == 0) return find_or_add(nodes_, key);
  // One place may launch several kernels.
  uint32_t node = find_or_add(nodes_, key);
  return node != 0 ? find_or_add(leaves_, static_cast<uint64_t>(node) << 32 | kernel) : 0;
}

// ---- on the writer's

void Stacks::describe() {
  if (!on_) return;
  uint64_t lost = 0;
  {
    std::lock_guard lock(mutex_);
    notice_unloads();
    described_.assign(new_places_.begin(), new_places_.end());
    new_places_.clear();
    std::swap(lost, lost_);
  }
  for (const Place& place : described_) describe(place);
  definitions_.add_loss(LossKind::kStacks, lost);
}

void Stacks::describe(const Place& place) {
  Symbolizer::Symbol symbol;
  if (place.module != 0) symbol = symbolizer_.find(std::string(place.path), place.offset);
  auto id_of = [&](const std::string& text) { return text.empty() ? 0 : definitions_.string(text)->id; };
  definitions_.add_code(place.id, CodeRecord{{}, place.module, place.build_id, id_of(symbol.function), id_of(symbol.file),
                                             symbol.line, CodeLanguage::kNative, place.offset});
}

}  // namespace lamina
