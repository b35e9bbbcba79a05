// The recorder of this process: one instance, never destroyed, that owns every part and their life. The doors
// (entry.cpp), the NVTX handler and the CUPTI callbacks call it; it calls nothing of them.
#pragma once

#include <array>
#include <atomic>
#include <pthread.h>

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <utility>
#include <vector>

#include "inject/activity.h"
#include "inject/block_pool.h"
#include "inject/busy.h"
#include "inject/collector.h"
#include "inject/cupti_api.h"
#include "inject/definitions.h"
#include "inject/file_writer.h"
#include "inject/options.h"
#include "inject/phases.h"
#include "inject/stacks.h"
#include "inject/start_end_ranges.h"
#include "inject/thread_log.h"

namespace lamina {

class Recorder {
 public:
  // What this process does with what it sees.
  enum class State : int {
    kWaiting,    // for CUDA: NVTX events are kept in memory, there is no file and no thread yet
    kRecording,
    kOff,        // failed, ended, or in a child of a fork of a recording process: everything is ignored
  };

  // Made when the library is loaded, never destroyed: threads and exit handlers of the program may call in at any time.
  static Recorder& instance() { return *instance_; }

  // CUDA comes up: opens CUPTI and the profile and starts the writer thread. Says why when it can not. True if it records
  // from now on; false the second time.
  bool start();

  // The stream of the calling thread; null when nothing is to be recorded. Never throws. For NVTX calls, which a signal
  // handler may make inside of the recorder; and for callbacks, which are inside of it themselves.
  ThreadLog* thread_log() {
    if (ThreadLog* log = current_log) [[likely]] return log;
    return Busy::interrupted() ? nullptr : new_thread_log();
  }
  ThreadLog* callback_thread_log() {
    if (ThreadLog* log = current_log) [[likely]] return log;
    return new_thread_log();
  }

  // The process ends without its exit handlers. May be called in a signal handler and in a child of vfork().
  static void before_immediate_exit() noexcept;

  bool off() const { return state_.load(std::memory_order_relaxed) == State::kOff; }

  Options options = read_options();
  Definitions definitions{options.phase_patterns};
  Steps steps;
  StartEndRanges start_end_ranges;
  Collector collector{options};
  Stacks stacks{definitions};
  Cupti cupti;
  ActivityDecoder activity{definitions, options.buffer_bytes};

  std::atomic<uint32_t> graph_records{0};  // numbers them over all threads

  // Counts that the properties and the trailer tell.
  std::atomic<uint32_t> nvtx_copies{0};
  std::atomic<uint64_t> unbalanced_pops{0};

 private:
  Recorder();

  static Recorder* const instance_;

  using Chunks = std::vector<std::pair<format::ChunkHeader, std::vector<char>>>;

  ThreadLog* new_thread_log();
  bool start_cupti();
  bool open_file();
  void run_writer();
  bool finish_was_asked();
  std::array<std::mutex*, 6> mutexes_across_fork();
  void write_round(bool all_activity);
  void write_all();
  void describe_stacks();
  void drain(Chunks& chunks, bool all_activity);
  void drain_thread(ThreadLog& log, Chunks& chunks);
  void free_finished_threads();
  void stop(const char* why);
  void finish();
  static void at_exit();
  bool wait_for_writer(std::chrono::duration<double> deadline);
  static void before_fork();
  static void after_fork_in_parent();
  static void after_fork_in_child();

  // Initial-exec: one load, no call. Null before the thread's first event, after its end and after a fork.
  static constinit thread_local ThreadLog* current_log __attribute__((tls_model("initial-exec")));

  std::atomic<State> state_{State::kWaiting};
  std::atomic<bool> started_{false};
  pid_t process_ = 0;  // that records
  BlockPool pool_{options.buffer_bytes};
  FileWriter file_;
  pthread_key_t thread_end_key_{};
  std::atomic<ThreadLog*> logs_{nullptr};
  std::vector<ThreadLog*> logs_before_fork_;
  std::atomic<uint32_t> threads_{0};

  // The writer thread's own.
  Chunks late_;
  bool first_round_ = true;
  bool devices_known_ = false;
  uint64_t activity_records_ = 0;

  std::mutex write_mutex_;  // a round at a time
  std::mutex wake_mutex_;
  std::condition_variable wake_;
  std::condition_variable finished_wake_;
  bool finish_asked_ = false;
  std::atomic<bool> drain_asked_{false};  // buffers run low
  bool finished_ = false;
};

}  // namespace lamina
