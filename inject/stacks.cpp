#include "inject/stacks.h"

#include <algorithm>
#include <bit>

#include "inject/clock.h"
#include "inject/log.h"

namespace lamina {

using namespace format;

bool Stacks::open() {
  on_ = unwinder_.open();
  if (on_) find_python();
  if (!on_) log_line("no call stacks: libunwind.so.8 was not found; install it, or put it beside liblamina_inject.so");
  return on_;
}

// True when it was just found.
bool Stacks::find_python() {
  bool found = python_.find_interpreter();
  if (python_.has_interpreter()) python_end_.watch();
  return found;
}

// ---- on the program's threads

uint32_t Stacks::unwind(const uintptr_t* first, KnownCallers& known, std::span<SavedReturn> frames, size_t* count) {
  uint64_t begin = host_now();
  // Also while libunwind goes through the list of libraries: a fork meanwhile would leave that locked in the child.
  std::lock_guard lock(mutex_);
  if (node_count_ == kMaxNodes) return lose(), 0;  // no stack can become known
  notice_unloads();
  known.prepare(generation(), frames.size());
  Unwinder::Unwound unwound = unwinder_.unwind(first, frames, known);
  *count = unwound.size;
  uint32_t stack = *count > 0 ? make_known(frames.data(), unwound, known) : 0;
  uint64_t us = (host_now() - begin) / 1000;
  durations_[std::min<size_t>(std::bit_width(us), durations_.size() - 1)].fetch_add(1, std::memory_order_relaxed);
  return stack;
}

bool Stacks::runs_python(std::span<const SavedReturn> frames) {
  if (!python_.has_interpreter()) return false;
  std::lock_guard lock(mutex_);
  const LoadedModules::Module* interpreter = modules_.find(python_.code_address());
  return interpreter && std::ranges::any_of(frames, [&](const SavedReturn& frame) {
           return frame.address >= interpreter->begin && frame.address < interpreter->end;
         });
}

uint32_t Stacks::complete(uint32_t native, std::span<const SavedReturn> frames, std::span<const PythonFrame> python, const char* kernel) {
  uint32_t kernel_id = kernel ? definitions_.kernel_name(kernel)->id : 0;
  std::lock_guard lock(mutex_);
  uint32_t node = python.empty() ? native : with_python(frames, python);
  uint32_t stack = node != 0 && kernel_id != 0 ? leaf_of(node, kernel_id) : node;
  if (stack == 0) lose();
  return stack != 0 ? stack : native;
}

void Stacks::notice_unloads() {
  modules_.refresh();
  if (modules_.unloads() == known_unloads_) return;
  known_unloads_ = modules_.unloads();
  places_.clear();
  unwinder_.forget_code();
  forget_addresses();
}

uint32_t Stacks::make_known(const SavedReturn* frames, const Unwinder::Unwound& unwound, KnownCallers& known) {
  uint32_t node = unwound.node;
  uint32_t caller = unwound.caller;
  for (size_t i = node != 0 ? unwound.new_size : unwound.size; i-- > 0;) {
    node = node_of(node, place_of(frames[i].address));
    if (node == 0) return 0;
    // The innermost one is no caller.
    if (i > 0 && i < unwound.new_size) caller = known.add(frames[i], caller, unwound.complete ? node : 0);
  }
  return node;
}

// Evaluations outside of all functions of Python are what a switch of stacks (greenlets) has left there: without them, and
// what is around them.
std::span<const SavedReturn> Stacks::without_stale(std::span<const SavedReturn> frames, std::span<const PythonFrame> python) const {
  auto* outermost = static_cast<const uintptr_t*>(python.back().anchor);
  if (!outermost || python.size() == kMaxPythonFrames) return frames;  // there may be more, which are cut
  size_t size = frames.size();
  while (size > 1 && frames[size - 1].location > outermost) --size;
  bool stale = std::ranges::any_of(frames.subspan(size), [this](const SavedReturn& frame) { return python_.is_evaluation(frame.address); });
  return stale ? frames.first(size) : frames;
}

// Functions of Python stand inside of the native frame that evaluates them: that which C has called, with its anchor there,
// and those that it has called without C in between.
uint32_t Stacks::with_python(std::span<const SavedReturn> frames, std::span<const PythonFrame> python) {
  frames = without_stale(frames, python);
  uint32_t node = 0;
  bool known = true;
  auto add = [&](uint32_t place) {
    node = known ? node_of(node, place) : 0;
    known = node != 0;
  };
  for (size_t i = frames.size(); i-- > 0;) {
    bool is_code = modules_.find(frames[i].address - 1) != nullptr;
    if (node != 0 || is_code) add(place_of(frames[i].address));
    auto stands_here = [&](const PythonFrame& frame) { return !frame.anchor || frame.anchor > frames[i].location; };
    while (!python.empty() && stands_here(python.back())) {
      add(place_of(python.back()));
      python = python.first(python.size() - 1);
    }
  }
  // In Python 3.10 generators that pass an exception on have no anchor of their own, and take those of others.
  for (; !python.empty(); python = python.first(python.size() - 1)) add(place_of(python.back()));
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
  if (auto known = places_.find(return_address); known != places_.end()) return known->second;
  if (place_count_ == kMaxPlaces) return 0;
  const LoadedModules::Module* module = modules_.find(address);
  uint32_t id = places_[return_address] = ++place_count_;
  Place place{id, 0, 0, {}, address};
  if (module) {
    place.path = module->path;
    place.module = definitions_.string(module->path)->id;
    place.build_id = module->build_id.empty() ? 0 : definitions_.string(module->build_id)->id;
    place.offset = address - module->bias;
  }
  new_places_.push_back(place);
  return id;
}

uint32_t Stacks::place_of(const PythonFrame& frame) {
  if (auto known = python_places_.find(frame.hash); known != python_places_.end()) return known->second;
  if (place_count_ == kMaxPlaces) return 0;
  uint32_t id = python_places_[frame.hash] = ++place_count_;
  std::array<char, 1024> room;
  uint32_t function = definitions_.string(python_.function(frame, room))->id;
  uint32_t file = definitions_.string(python_.file(frame, room))->id;
  definitions_.add_code(id, CodeRecord{{}, 0, 0, function, file, python_.line(frame), CodeLanguage::kPython, 0});
  return id;
}

uint32_t Stacks::new_node(std::pmr::unordered_map<uint64_t, uint32_t>& ids, uint64_t key, const StackRecord& record) {
  if (auto known = ids.find(key); known != ids.end()) return known->second;
  if (node_count_ == kMaxNodes) return 0;
  uint32_t id = ids[key] = ++node_count_;
  definitions_.add_stack(id, record);
  return id;
}

// 0 past the limits, and for place 0.
uint32_t Stacks::node_of(uint32_t parent, uint32_t place) {
  if (place == 0) return 0;
  return new_node(nodes_, static_cast<uint64_t>(parent) << 32 | place, StackRecord{{}, parent, place, 0, 0});
}

// One place may launch several kernels.
uint32_t Stacks::leaf_of(uint32_t node, uint32_t kernel) {
  return new_node(leaves_, static_cast<uint64_t>(node) << 32 | kernel, StackRecord{{}, node, 0, kernel, 0});
}

// ---- on the writer's

bool Stacks::take_new_places() {
  if (!on_) return false;
  if (find_python()) forget_addresses();  // stacks were taken for such without Python
  uint64_t lost = 0;
  {
    std::lock_guard lock(mutex_);
    notice_unloads();
    described_.assign(new_places_.begin(), new_places_.end());
    new_places_.clear();
    lost = lost_.exchange(0);
  }
  definitions_.add_loss(LossKind::kStacks, lost);
  return !described_.empty();
}

void Stacks::describe_places() {
  for (const Place& place : described_) describe(place);
}

void Stacks::describe(const Place& place) {
  Symbolizer::Symbol symbol;
  if (place.module != 0) symbol = symbolizer_.find(std::string(place.path), place.offset);
  auto id_of = [&](const std::string& text) { return text.empty() ? 0 : definitions_.string(text)->id; };
  definitions_.add_code(place.id, CodeRecord{{}, place.module, place.build_id, id_of(symbol.function), id_of(symbol.file),
                                             symbol.line, CodeLanguage::kNative, place.offset});
}

}  // namespace lamina
