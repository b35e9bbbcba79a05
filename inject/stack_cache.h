// The stacks that one thread was seen with. They form a radix tree: a node holds a run of frames that were always seen
// together, and below it are the runs that returned into it. A stack is the same as one seen before if every saved
// return address is, which this reads along the way down the tree. So a known stack costs a comparison for each of its
// frames, and no unwinding.
//
// A frame's place is only looked at once all frames below it are known to be there, so that it lies on the stack at hand. (Not
// if a fiber's stack was replaced by a smaller one in the same place, and a frame of varying size left all of these alike.)
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "inject/saved_return.h"

namespace lamina {

class StackCache {
 public:
  StackCache();
  ~StackCache();
  StackCache(const StackCache&) = delete;
  StackCache& operator=(const StackCache&) = delete;

  // The stack of the calling thread whose innermost saved return address lies at `first`; 0 if it is not known.
  uint32_t find(const uintptr_t* first);
  // The frames of the stack that find() gave for this place just now; as many as fit, innermost first. Gives how many.
  size_t found_frames(const uintptr_t* first, std::span<SavedReturn> frames);
  // `frames`: innermost first, not empty.
  void add(std::span<const SavedReturn> frames, uint32_t stack);
  void clear();

 private:
  // The nodes below one are a ring. The search begins behind the one that was met last: a program calls in the same
  // order over and over, and so the first that is looked at is most often the one.
  struct Node {
    const SavedReturn* run;  // of `size` frames and the end mark
    uint32_t size;
    uint32_t met_last;  // of the ring of this node's callers; 0: none
    uint32_t next;      // in the ring that this node is in
    uint32_t stack;     // that ends with this run
  };
  static constexpr size_t kNodes = 1u << 15;
  static constexpr size_t kFrames = 1u << 16;
  static constexpr size_t kMaxRing = 1024;  // a search takes some microseconds at most
  static constexpr size_t kRoots = 1u << 12;

  uint32_t& root_of(const uintptr_t* first) { return roots_[reinterpret_cast<uintptr_t>(first) / 8 % kRoots]; }
  bool is_there(const Node& node) const;
  Node* meet(uint32_t& ring, const uintptr_t* place);
  uint32_t find_in(uint32_t ring, const SavedReturn& frame, size_t* tried) const;
  void insert(uint32_t& ring, std::span<const SavedReturn> run, uint32_t stack);
  void split(Node& node, size_t size);
  const SavedReturn* new_run(std::span<const SavedReturn> frames);

  Node* const nodes_;
  SavedReturn* const frames_;
  uint32_t used_nodes_ = 1;
  size_t used_frames_ = 0;
  std::array<uint32_t, kRoots> roots_{};  // the rings of innermost runs
};

}  // namespace lamina
