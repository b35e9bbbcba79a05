#include "inject/collector.h"

#include <algorithm>

#include "inject/cupti_api.h"

namespace lamina {

bool Collector::wants(std::string_view phase, uint64_t opening) const {
  if (opening % options_.every != 0) return false;
  const auto& names = options_.collect_phases;
  return names.empty() || std::find(names.begin(), names.end(), phase) != names.end();
}

void Collector::start(Cupti& cupti) {
  std::lock_guard lock(mutex_);
  cupti_ = &cupti;
  refresh();
}

void Collector::open_step(uint32_t step) {
  std::lock_guard lock(mutex_);
  open_steps_.push_back(step);
  refresh();
}

void Collector::close_step(uint32_t step) {
  std::lock_guard lock(mutex_);
  if (std::erase(open_steps_, step) > 0) refresh();
}

void Collector::profiler_start() {
  std::lock_guard lock(mutex_);
  profiler_on_ = true;
  refresh();
}

void Collector::profiler_stop() {
  std::lock_guard lock(mutex_);
  profiler_on_ = false;
  refresh();
}

void Collector::stop() {
  std::lock_guard lock(mutex_);
  stopped_ = true;
  refresh();
}

// The mutex is held across the CUPTI call: no callback takes it but those of the profiler calls, on their own thread.
void Collector::refresh() {
  bool by_steps = !options_.collect_phases.empty() || options_.every > 1;
  bool on = options_.records_always() || (by_steps && !open_steps_.empty() && (!options_.collect_profiler || profiler_on_)) ||
            (!by_steps && profiler_on_);
  if (stopped_) on = false;
  if (!cupti_ || on == activity_on_) return;
  activity_on_ = on;
  if (on) cupti_->enable_activity();
  recording_.store(on, std::memory_order_relaxed);
  if (!on) cupti_->disable_activity();
}

}  // namespace lamina
