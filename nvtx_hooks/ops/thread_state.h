// What the observer keeps of each thread.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "nvtx_hooks/text/text_cache.h"
#include "script_modules.h"
#include "views.h"

namespace lamina {

// A scope that began on one thread may end on another (one that waits for a future, a script function that was
// suspended). Only the thread itself can pop its ranges, so that the end is left here for it. Outlives the thread.
class EndsElsewhere {
 public:
  void add_user_scope() { user_scopes_.fetch_add(1); }
  void add_function(uint64_t number) {
    std::lock_guard lock(mutex_);
    functions_.push_back(number);
    has_functions_.store(true);
  }

  int take_user_scopes() { return user_scopes_.load(std::memory_order_relaxed) ? user_scopes_.exchange(0) : 0; }
  bool has_functions() const { return has_functions_.load(std::memory_order_relaxed); }
  std::vector<uint64_t> take_functions() {
    std::lock_guard lock(mutex_);
    has_functions_.store(false);
    return std::exchange(functions_, {});
  }

 private:
  std::atomic<int> user_scopes_{0};
  std::atomic<bool> has_functions_{false};
  std::mutex mutex_;
  std::vector<uint64_t> functions_;
};

struct ThreadState {
  TextCache cache;
  ViewCache views;
  ScriptModules modules;
  std::shared_ptr<EndsElsewhere> ends = std::make_shared<EndsElsewhere>();
};

// Without constructor and destructor, so that it can be looked at while the thread's other objects are destroyed.
struct ThreadSlot {
  ThreadState* state = nullptr;
  bool closed = false;
};
inline constinit thread_local ThreadSlot t_slot;

ThreadState* make_thread_state() noexcept;

// Null when the thread is about to end, and from then on; what was pushed before has been popped by then.
inline ThreadState* thread_state() noexcept {
  ThreadSlot& slot = t_slot;
  if (slot.state) [[likely]] return slot.state;
  return slot.closed ? nullptr : make_thread_state();
}

}  // namespace lamina
