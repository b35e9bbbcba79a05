// The stacks that one thread was seen with. They form a tree: what is below a frame are the frames that returned into it.
// A stack is the same as one seen before if every saved return address is, which this reads along the way down the tree.
// So a known stack costs a load for each of its frames, and no unwinding.
//
// Reading is safe: a frame's place is only looked at once all frames below it are known to be there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "inject/unwinder.h"

namespace lamina {

class StackCache {
 public:
  StackCache();
  ~StackCache();
  StackCache(const StackCache&) = delete;
  StackCache& operator=(const StackCache&) = delete;

  // The stack of the calling thread whose innermost saved return address lies at `first`; 0 if it is not known.
  uint32_t find(const uintptr_t* first);
  // `frames`: innermost first, not empty.
  void add(std::span<const SavedReturn> frames, uint32_t stack);
  void clear();

 private:
  // The nodes below one frame are a ring. The search begins behind the one that was met last: a program calls in the same
  // order over and over, and so the first that is looked at is most often the one.
  struct Node {
    const uintptr_t* location;
    uintptr_t address;
    uint32_t met_last;  // of the ring above; 0: none
    uint32_t next;      // in this node's ring
    uint32_t stack;     // if it is the outermost frame of one
  };
  static constexpr size_t kNodes = 1u << 15;
  static constexpr size_t kMaxRing = 1024;  // a search takes a microsecond or two at most
  static constexpr size_t kRootBits = 12;
  static constexpr size_t kRoots = 1u << kRootBits;  // the first nodes are the heads of the innermost frames' rings

  static uint32_t root_of(const uintptr_t* first) {
    return static_cast<uint32_t>(reinterpret_cast<uintptr_t>(first) / 8 % (kRoots - 1)) + 1;
  }
  static bool is_there(const Node& node) { return *node.location == node.address; }
  uint32_t child(uint32_t parent, const SavedReturn& frame);
  uint32_t new_node(const SavedReturn& frame);

  Node* const nodes_;
  uint32_t used_ = kRoots;
};

}  // namespace lamina
