#include "report/commands/choice.h"

#include <optional>

#include "report/errors.h"
#include "report/format.h"
#include "report/tree/step_name.h"

namespace lamina {
namespace {

const PhaseReport* find_phase(const LayerReport& report, std::string_view name) {
  for (const PhaseReport& phase : report.phases) {
    if (phase.name == name) return &phase;
  }
  return nullptr;
}

// The step that `decode_7` names.
std::optional<Choice> find_step(const LayerReport& report, std::string_view name) {
  auto split = split_step_name(name);
  const PhaseReport* phase = split ? find_phase(report, split->phase) : nullptr;
  if (!phase) return std::nullopt;
  for (const StepReport& step : phase->steps) {
    if (step.number == split->number) return Choice{phase, &step};
  }
  return std::nullopt;
}

}  // namespace

const std::vector<SummaryNode>& Choice::summary() const { return step ? step->summary : phase->summary; }

const StepReport* Choice::model_step() const {
  if (step) return step;
  return phase->steps.empty() ? nullptr : &phase->steps.front();
}

const std::vector<ModelNode>& Choice::model() const {
  static const std::vector<ModelNode> kNone;
  const StepReport* shown = model_step();
  return shown ? shown->model : kNone;
}

std::string Choice::name() const { return step ? fmt::format("{}_{}", phase->name, step->number) : phase->name; }

std::vector<Choice> choose(const LayerReport& report, std::string_view phase, const std::string& profile) {
  std::vector<Choice> choices;
  if (phase.empty()) {
    for (const PhaseReport& each : report.phases) choices.push_back({&each});
  } else if (const PhaseReport* found = find_phase(report, phase)) {
    choices.push_back({found});
  } else if (auto step = find_step(report, phase)) {
    choices.push_back(*step);
  } else {
    throw InputError(fmt::format("no phase '{}' in {}: it has {}", phase, profile, phase_list(report)));
  }
  return choices;
}

std::string phase_list(const LayerReport& report) {
  std::string list;
  for (const PhaseReport& phase : report.phases) {
    list += (list.empty() ? "" : ", ") + phase.name;
    if (phase.step_count > 1) list += fmt::format(" ({} steps)", phase.step_count);
  }
  return list.empty() ? "none" : list;
}

KernelGroups choose_groups(const std::string& file) { return file.empty() ? KernelGroups() : KernelGroups::from_file(file); }

std::string beside_profile(std::string profile, std::string_view ending) {
  while (profile.size() > 1 && profile.back() == '/') profile.pop_back();
  return profile + std::string(ending);
}

}  // namespace lamina
