// The ranges of nvtxRangeStart that are open in the process. They count for the thread that started them; another
// thread may end them, which the owner sees at its next event. Ids are never reused, so that a stale one does nothing.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <unordered_map>

namespace lamina {

class StartEndRanges {
 public:
  uint64_t add() {
    std::lock_guard lock(mutex_);
    ended_.emplace(++last_id_, false);
    return last_id_;
  }

  void remove(uint64_t id) {
    std::lock_guard lock(mutex_);
    ended_.erase(id);
  }

  void end_elsewhere(uint64_t id) {
    std::lock_guard lock(mutex_);
    auto range = ended_.find(id);
    if (range == ended_.end() || range->second) return;
    range->second = true;
    ended_count_.fetch_add(1, std::memory_order_relaxed);
  }

  bool any_ended() const { return ended_count_.load(std::memory_order_relaxed) > 0; }

  // True once, when another thread has ended the range.
  bool take_ended(uint64_t id) {
    std::lock_guard lock(mutex_);
    auto range = ended_.find(id);
    if (range == ended_.end() || !range->second) return false;
    ended_.erase(range);
    ended_count_.fetch_sub(1, std::memory_order_relaxed);
    return true;
  }

  std::mutex& mutex() { return mutex_; }

 private:
  std::mutex mutex_;
  std::unordered_map<uint64_t, bool> ended_;
  std::atomic<size_t> ended_count_{0};
  uint64_t last_id_ = 0;
};

}  // namespace lamina
