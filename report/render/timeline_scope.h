// What the parts of a timeline share: where its time begins, which steps it shows, and what its tracks are numbered.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>

#include "report/attribution/steps.h"
#include "report/render/timeline_events.h"
#include "report/tree/step_name.h"

namespace lamina {

// A phase, a step of one such as decode_7, or all. Knows whether there was one.
class PhaseChoice {
 public:
  explicit PhaseChoice(std::string wanted = "") : wanted_(std::move(wanted)) {}

  bool includes(PhaseStep step) {
    bool fits = wants(step);
    found_ |= fits;
    return fits;
  }
  bool wants(PhaseStep step) const {
    if (wanted_.empty() || step.phase == wanted_) return true;
    auto one = split_step_name(wanted_);
    return one && one->phase == step.phase && one->number == step.number;
  }
  bool found() const { return found_ || wanted_.empty(); }

 private:
  std::string wanted_;
  bool found_ = false;
};

// The steps of one process.
class ProcessSteps {
 public:
  ProcessSteps(PhaseChoice& choice, PhaseSource phases) : choice_(choice), phases_(phases) {}

  // Of a step as records have it.
  bool shown(const ProcessDefinitions& definitions, uint32_t step) {
    step = counted_step(definitions, step, phases_);
    auto [known, added] = shown_.try_emplace(step);
    if (added) known->second = choice_.includes(phase_step(definitions, step, phases_));
    return known->second;
  }
  bool counts(const ProcessDefinitions& definitions, uint32_t step) const { return counted_step(definitions, step, phases_) == step; }
  PhaseStep name(const ProcessDefinitions& definitions, uint32_t step) const { return phase_step(definitions, step, phases_); }
  bool has_phases() const { return phases_ != PhaseSource::kNone; }

 private:
  PhaseChoice& choice_;
  PhaseSource phases_;
  std::unordered_map<uint32_t, bool> shown_;
};

struct TimelineScope {
  // Tracks that are no thread of the system get numbers that no system gives (pid_max is at most 2^22).
  static constexpr uint64_t kFirstNumber = 1'000'000'000;

  const TimelineEvents& events;
  uint64_t start;  // CLOCK_REALTIME, ns
  uint64_t next_number = kFirstNumber;

  uint64_t since_start(uint64_t realtime) const { return realtime > start ? realtime - start : 0; }
  uint64_t new_number() { return next_number++; }
};

}  // namespace lamina
