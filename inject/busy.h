// Whether the calling thread is inside of the recorder. A signal handler of the program may come at any time and make an
// NVTX call: inside of the recorder it would find things half done, or wait for a lock of its own thread, and so it is left
// out, and counted.
#pragma once

#include <atomic>
#include <cstdint>

namespace lamina {

// Around all that appends to a thread's stream, changes its stack or takes a lock.
class Busy {
 public:
  Busy() : before_(now()) { set(true); }
  ~Busy() { set(before_); }
  Busy(const Busy&) = delete;
  Busy& operator=(const Busy&) = delete;

  static bool now() { return flag_.load(std::memory_order_relaxed); }
  // Only the thread itself looks, in a handler: the order of the instructions is all that matters.
  static void set(bool busy) {
    std::atomic_signal_fence(std::memory_order_seq_cst);
    flag_.store(busy, std::memory_order_relaxed);
    std::atomic_signal_fence(std::memory_order_seq_cst);
  }

  // Whether the caller is such a handler; counts what it wanted to say.
  static bool interrupted() {
    if (!now()) return false;
    left_out_.fetch_add(1, std::memory_order_relaxed);
    return true;
  }
  static uint64_t take_left_out() { return left_out_.exchange(0, std::memory_order_relaxed); }

 private:
  // Initial-exec: one load, no call.
  static inline constinit thread_local std::atomic<bool> flag_ __attribute__((tls_model("initial-exec"))) = false;
  static inline constinit std::atomic<uint64_t> left_out_ = 0;

  bool before_;
};

}  // namespace lamina
