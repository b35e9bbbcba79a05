// When kernel activity is recorded: always, or only inside chosen phases, steps or cudaProfilerStart/Stop. Callbacks of
// launches and graph nodes stay on, so that graphs built outside are still attributed. Kernels launched before activity
// goes off keep their records though they run after (measured: driver 580, CUPTI 13.0), so a step needs no wait at its end.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <string_view>
#include <vector>

#include "inject/callback_memory.h"
#include "inject/options.h"

namespace lamina {

class Cupti;

class Collector {
 public:
  explicit Collector(const Options& options) : options_(options) {}

  // Whether the n-th opening (from 0) of the phase is to be recorded.
  bool wants(std::string_view phase, uint64_t opening) const;

  // Called once when CUPTI is ready; switches activity on unless it waits for a window.
  void start(Cupti& cupti);
  // A step that is wanted begins and ends. Steps may be open on several threads; activity is on while any is.
  // close_step ignores a step that was not wanted.
  void open_step(uint32_t step);
  void close_step(uint32_t step);
  // cudaProfilerStart and Stop, which do not nest in CUDA either.
  void profiler_start();
  void profiler_stop();

  // For good, when recording has failed.
  void stop();

  std::mutex& mutex() { return mutex_; }

  bool recording() const { return recording_.load(std::memory_order_relaxed); }

 private:
  void refresh();

  const Options& options_;
  std::mutex mutex_;
  Cupti* cupti_ = nullptr;
  CallbackMemory memory_;
  std::pmr::vector<uint32_t> open_steps_{&memory_};
  bool stopped_ = false;
  bool profiler_on_ = false;
  bool activity_on_ = false;
  std::atomic<bool> recording_{false};
};

}  // namespace lamina
