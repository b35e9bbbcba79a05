// The ranges of nvtxRangeStart that are open in the process. They count for the thread that started them; another
// thread may end them, which the owner sees at its next event. Ids are not used again, so that a stale one does nothing.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <unordered_map>

#include "inject/callback_memory.h"

namespace lamina {

class StartEndRanges {
 public:
  uint32_t add() {
    std::lock_guard lock(mutex_);
    if (++last_id_ == 0) ++last_id_;  // 0 is no range
    open_.emplace(last_id_, Range{});
    return last_id_;
  }

  // The step that the range opened.
  void set_step(uint32_t id, uint32_t step) {
    std::lock_guard lock(mutex_);
    open_[id].step = step;
  }

  void remove(uint32_t id) {
    std::lock_guard lock(mutex_);
    open_.erase(id);
  }

  // The thread that started it ends; the range, and the phase it may be, go on.
  void orphan(uint32_t id) {
    std::lock_guard lock(mutex_);
    auto range = open_.find(id);
    if (range != open_.end()) range->second.orphan = true;
  }

  // Returns the step of the range, 0 if it has none or was ended before.
  uint32_t end_elsewhere(uint32_t id) {
    std::lock_guard lock(mutex_);
    auto range = open_.find(id);
    if (range == open_.end() || range->second.ended) return 0;
    uint32_t step = range->second.step;
    if (range->second.orphan) {
      open_.erase(range);
      return step;
    }
    range->second.ended = true;
    ended_count_.fetch_add(1, std::memory_order_relaxed);
    return step;
  }

  bool any_ended() const { return ended_count_.load(std::memory_order_relaxed) > 0; }

  // True once, when another thread has ended the range.
  bool take_ended(uint32_t id) {
    std::lock_guard lock(mutex_);
    auto range = open_.find(id);
    if (range == open_.end() || !range->second.ended) return false;
    open_.erase(range);
    ended_count_.fetch_sub(1, std::memory_order_relaxed);
    return true;
  }

  std::mutex& mutex() { return mutex_; }

 private:
  struct Range {
    bool ended = false;
    bool orphan = false;
    uint32_t step = 0;
  };

  std::mutex mutex_;
  CallbackMemory memory_;
  std::pmr::unordered_map<uint32_t, Range> open_{&memory_};
  std::atomic<size_t> ended_count_{0};
  uint32_t last_id_ = 0;
};

}  // namespace lamina
