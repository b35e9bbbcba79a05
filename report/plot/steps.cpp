#include "report/plot/steps.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "report/commands/choice.h"
#include "report/errors.h"
#include "report/format.h"
#include "report/render/text.h"
#include "report/tree/step_name.h"

namespace lamina {
namespace {

constexpr size_t kReadableBars = 60;
constexpr size_t kMaxBars = 2000;

// What ran outside of the phases that the program named: the loading of weights would dwarf the rest.
bool is_unnamed(const PhaseReport& phase) { return is_unnamed_phase(phase.name); }

bool has_time(const PhaseReport& phase) {
  return std::ranges::any_of(phase.summary, [](const SummaryNode& root) { return root.cuda_time_us > 0; });
}

std::vector<Choice> drawn_phases(const LayerReport& report, const ChartOptions& options, std::vector<std::string>& messages) {
  std::vector<Choice> choices = choose(report, options.phase, options.profile);
  bool any_named = std::ranges::any_of(report.phases, [](const PhaseReport& phase) { return !is_unnamed(phase); });
  if (!options.phase.empty() || !any_named) return choices;
  std::string left_out;
  for (const Choice& choice : choices) {
    if (is_unnamed(*choice.phase) && has_time(*choice.phase)) left_out += (left_out.empty() ? "" : " and ") + choice.phase->name;
  }
  if (!left_out.empty()) messages.push_back(fmt::format("{}: not drawn, being outside of every phase; give --phase to draw one", left_out));
  std::erase_if(choices, [](const Choice& choice) { return is_unnamed(*choice.phase); });
  return choices;
}

// Every N-th from the first, and the last.
size_t count_drawn(size_t steps, size_t interval) { return steps == 0 ? 0 : (steps - 1) / interval + 1 + ((steps - 1) % interval != 0); }

bool is_drawn(size_t index, size_t steps, size_t interval) { return index % interval == 0 || index + 1 == steps; }

size_t count_all(const std::vector<Choice>& phases, size_t interval) {
  size_t count = 0;
  for (const Choice& choice : phases) count += choice.step ? 1 : count_drawn(choice.phase->steps.size(), interval);
  return count;
}

// The least of 1, 2, 5, 10, 20, 50, … with which not more than `bars` are drawn. Phases without end have a bar or two each.
size_t interval_for(const std::vector<Choice>& phases, size_t bars) {
  size_t longest = 1;
  for (const Choice& choice : phases) longest = std::max(longest, choice.phase->steps.size());
  for (size_t ten = 1;; ten *= 10) {
    for (size_t interval : {ten, 2 * ten, 5 * ten}) {
      if (count_all(phases, interval) <= bars || interval >= longest) return interval;
    }
  }
}

size_t chosen_interval(const std::vector<Choice>& phases, const ChartOptions& options, std::vector<std::string>& messages) {
  size_t all = count_all(phases, 1);
  if (options.step_interval) {
    size_t bars = count_all(phases, *options.step_interval);
    if (bars > kMaxBars) {
      throw UsageError(fmt::format("--step-interval {}: makes {} bars, more than can be seen; give {} or more", *options.step_interval, bars,
                                   interval_for(phases, kMaxBars)));
    }
    return *options.step_interval;
  }
  size_t interval = interval_for(phases, kReadableBars);
  if (interval > 1) messages.push_back(fmt::format("{} steps: one of {} and the last are drawn; --step-interval chooses otherwise", all, interval));
  return interval;
}

// As in `prefill`, `decode_7`, `decode_7-seqs-32`.
std::string label_of(const PhaseReport& phase, const StepReport& step) {
  std::string label = printable(phase.name);
  if (phase.name == "decode" || phase.steps.size() > 1) label += fmt::format("_{}", step.number);
  auto sequences = step.metadata->find("num_running_seqs");
  bool known = sequences != step.metadata->end() && sequences->is_number_integer();
  if (known && phase.name != "prefill") label += fmt::format("-seqs-{}", sequences->get<int64_t>());
  return label;
}

}  // namespace

std::vector<StepBar> choose_steps(const LayerReport& report, const ChartOptions& options, std::vector<std::string>& messages) {
  std::vector<Choice> phases = drawn_phases(report, options, messages);
  size_t interval = chosen_interval(phases, options, messages);
  std::vector<StepBar> bars;
  for (const Choice& choice : phases) {
    const PhaseReport& phase = *choice.phase;
    if (choice.step) bars.push_back({label_of(phase, *choice.step), phase.name, &choice.step->summary});
    for (size_t i = 0; !choice.step && i < phase.steps.size(); ++i) {
      const StepReport& step = phase.steps[i];
      if (is_drawn(i, phase.steps.size(), interval)) bars.push_back({label_of(phase, step), phase.name, &step.summary});
    }
  }
  if (bars.empty()) throw InputError("no GPU work in " + options.profile + ": nothing to draw");
  return bars;
}

}  // namespace lamina
