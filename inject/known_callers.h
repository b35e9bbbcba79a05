// What lies outside of the frames that one thread was seen with: each frame with the chain of its callers, as it was
// when that frame was last unwound. If every saved return address of the chain is still there, so is the rest of the
// stack, and unwinding can stop. Entries never change: a frame that is seen with other callers gets another entry.
//
// Reading is safe: a caller's place is only looked at once all frames of the chain below it are known to be there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "inject/saved_return.h"

namespace lamina {

class KnownCallers {
 public:
  // What a chain ends with.
  static constexpr uint32_t kNone = 0;     // the outermost frame of the thread
  static constexpr uint32_t kUnknown = 1;  // a frame that was not unwound further

  struct Chain {
    size_t size = 0;            // how many of the callers are there
    bool complete = false;      // up to the outermost
    bool enough = false;        // complete, or as many as were asked for
    uint32_t entry = kUnknown;  // the frame's
    uint32_t node = 0;          // the frame's, of a complete chain
  };

  KnownCallers();
  ~KnownCallers();
  KnownCallers(const KnownCallers&) = delete;
  KnownCallers& operator=(const KnownCallers&) = delete;

  // Fills `callers` with those of a frame that is there.
  Chain find(const SavedReturn& frame, std::span<SavedReturn> callers) const;
  // Gives the frame's entry. `caller`: the entry of the next frame outside; `node`: what the owner knows the frame with
  // its callers by, 0 if by nothing.
  uint32_t add(const SavedReturn& frame, uint32_t caller, uint32_t node);
  // Keeps what is known if that is of this generation, and if as many frames can be added.
  void prepare(uint32_t generation, size_t frames);

 private:
  struct Entry {
    SavedReturn frame;
    uint32_t caller;
    uint32_t node;
  };
  static constexpr size_t kEntries = 1u << 15;
  static constexpr int kLatestBits = 14;
  static constexpr size_t kLatest = 1u << kLatestBits;  // by the frame's hash; the newer of two takes the place

  uint32_t& latest_of(const SavedReturn& frame) const;
  void clear();

  Entry* const entries_;
  uint32_t* const latest_;
  uint32_t used_ = kUnknown + 1;
  uint32_t generation_ = 0;
};

}  // namespace lamina
