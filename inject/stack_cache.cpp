#include "inject/stack_cache.h"

#include <cstring>

#include "inject/callback_memory.h"

namespace lamina {

// Pages that no node lies in yet cost nothing.
StackCache::StackCache() : nodes_(static_cast<Node*>(mapped_pages()->allocate(kNodes * sizeof(Node)))) {}

StackCache::~StackCache() { mapped_pages()->deallocate(nodes_, kNodes * sizeof(Node)); }

uint32_t StackCache::find(const uintptr_t* first) {
  Node* above = nodes_ + root_of(first);
  const uintptr_t* place = first;  // only stacks that begin there
  while (above->met_last != 0) {
    uint32_t at = nodes_[above->met_last].next;
    Node* found = nullptr;
    for (uint32_t tried = at;;) {
      Node& node = nodes_[tried];
      if ((!place || node.location == place) && is_there(node)) {
        found = &node;
        above->met_last = tried;
        break;
      }
      tried = node.next;
      if (tried == at) break;
    }
    if (!found) return 0;
    if (found->stack != 0) return found->stack;
    above = found;
    place = nullptr;
  }
  return 0;
}

uint32_t StackCache::new_node(const SavedReturn& frame) {
  if (used_ == kNodes) return 0;
  nodes_[used_] = {frame.location, frame.address, 0, used_, 0};
  return used_++;
}

// The node of this frame below `parent`, made if there is none; 0 if there is no room.
uint32_t StackCache::child(uint32_t parent, const SavedReturn& frame) {
  Node& above = nodes_[parent];
  size_t ring = 0;
  if (uint32_t at = above.met_last) {
    do {
      at = nodes_[at].next;
      if (nodes_[at].location == frame.location && nodes_[at].address == frame.address) return above.met_last = at;
      ++ring;
    } while (at != above.met_last);
  }
  if (ring == kMaxRing) return 0;
  uint32_t added = new_node(frame);
  if (added == 0) return 0;
  if (above.met_last != 0) {
    nodes_[added].next = nodes_[above.met_last].next;
    nodes_[above.met_last].next = added;
  }
  return above.met_last = added;
}

void StackCache::add(std::span<const SavedReturn> frames, uint32_t stack) {
  uint32_t at = root_of(frames.front().location);
  for (const SavedReturn& frame : frames) {
    at = child(at, frame);
    if (at == 0) return clear();  // full: what the program does now is learnt again
    // A shorter stack ended here, where the unwinder could see no further.
    nodes_[at].stack = 0;
  }
  nodes_[at].stack = stack;
}

void StackCache::clear() {
  memset(static_cast<void*>(nodes_), 0, used_ * sizeof(Node));
  used_ = kRoots;
}

}  // namespace lamina
