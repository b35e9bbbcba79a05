#include "inject/stack_cache.h"

#include <algorithm>

#include "inject/callback_memory.h"

namespace lamina {
namespace {

// Ends every run, so that a comparison that goes along it needs no count: a frame that is never there.
constexpr uintptr_t kNoAddress = 0;
constexpr SavedReturn kEndMark{&kNoAddress, 1};

// The first frame of the run that is not there.
const SavedReturn* first_missing(const SavedReturn* run) {
  for (;; run += 4) {
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
      if (*run[i].location != run[i].address) return run + i;
    }
  }
}

}  // namespace

// Pages that nothing lies in yet cost nothing.
StackCache::StackCache()
    : nodes_(static_cast<Node*>(mapped_pages()->allocate(kNodes * sizeof(Node)))),
      frames_(static_cast<SavedReturn*>(mapped_pages()->allocate(kFrames * sizeof(SavedReturn)))) {}

StackCache::~StackCache() {
  mapped_pages()->deallocate(nodes_, kNodes * sizeof(Node));
  mapped_pages()->deallocate(frames_, kFrames * sizeof(SavedReturn));
}

bool StackCache::is_there(const Node& node) const { return first_missing(node.run) == node.run + node.size; }

// The node of the ring whose run is there; null if there is none. `place`: only runs that begin there; null: anywhere.
StackCache::Node* StackCache::meet(uint32_t& ring, const uintptr_t* place) {
  uint32_t at = ring;
  do {
    at = nodes_[at].next;
    Node& node = nodes_[at];
    if ((!place || node.run->location == place) && is_there(node)) {
      ring = at;
      return &node;
    }
  } while (at != ring);
  return nullptr;
}

uint32_t StackCache::find(const uintptr_t* first) {
  uint32_t* ring = &root_of(first);
  for (const uintptr_t* place = first; *ring != 0; place = nullptr) {
    Node* node = meet(*ring, place);
    if (!node) return 0;
    if (node->stack != 0) return node->stack;
    ring = &node->met_last;
  }
  return 0;
}

size_t StackCache::found_frames(const uintptr_t* first, std::span<SavedReturn> frames) {
  size_t count = 0;
  for (uint32_t met = root_of(first); met != 0; met = nodes_[met].met_last) {
    const Node& node = nodes_[met];
    size_t size = std::min<size_t>(node.size, frames.size() - count);
    std::copy_n(node.run, size, frames.begin() + static_cast<long>(count));
    count += size;
    if (node.stack != 0) break;
  }
  return count;
}

// The node whose run begins with this frame; 0 if there is none.
uint32_t StackCache::find_in(uint32_t ring, const SavedReturn& frame, size_t* tried) const {
  *tried = 0;
  if (ring == 0) return 0;
  uint32_t at = ring;
  do {
    at = nodes_[at].next;
    if (*nodes_[at].run == frame) return at;
    ++*tried;
  } while (at != ring);
  return 0;
}

const SavedReturn* StackCache::new_run(std::span<const SavedReturn> frames) {
  SavedReturn* run = frames_ + used_frames_;
  *std::copy(frames.begin(), frames.end(), run) = kEndMark;
  used_frames_ += frames.size() + 1;
  return run;
}

void StackCache::insert(uint32_t& ring, std::span<const SavedReturn> run, uint32_t stack) {
  uint32_t added = used_nodes_++;
  uint32_t& next = ring != 0 ? nodes_[ring].next : added;
  nodes_[added] = {new_run(run), static_cast<uint32_t>(run.size()), 0, next, stack};
  next = added;
  ring = added;
}

// Leaves the first `size` frames in the node; the others become its only caller, and have what was the node's.
void StackCache::split(Node& node, size_t size) {
  uint32_t outer = used_nodes_++;
  nodes_[outer] = {node.run + size, node.size - static_cast<uint32_t>(size), node.met_last, outer, node.stack};
  node = {new_run({node.run, size}), static_cast<uint32_t>(size), outer, node.next, 0};
}

void StackCache::add(std::span<const SavedReturn> frames, uint32_t stack) {
  // Room for a node split, and its inner frames copied, and a new one.
  if (used_nodes_ + 2 > kNodes || used_frames_ + frames.size() + 2 > kFrames) clear();
  uint32_t* ring = &root_of(frames.front().location);
  while (!frames.empty()) {
    size_t tried = 0;
    uint32_t at = find_in(*ring, frames.front(), &tried);
    if (at == 0 && tried == kMaxRing) return clear();  // what the program does now is learnt again
    if (at == 0) return insert(*ring, frames, stack);
    Node& node = nodes_[at];
    size_t size = std::mismatch(frames.begin(), frames.end(), node.run).first - frames.begin();
    if (size < node.size) split(node, size);
    *ring = at;
    // A shorter stack ended here, where the unwinder could see no further.
    node.stack = size == frames.size() ? stack : 0;
    frames = frames.subspan(size);
    ring = &node.met_last;
  }
}

void StackCache::clear() {
  roots_.fill(0);
  used_nodes_ = 1;
  used_frames_ = 0;
}

}  // namespace lamina
