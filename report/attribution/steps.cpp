#include "report/attribution/steps.h"

namespace lamina {

using namespace format;

namespace {

constexpr std::string_view kStartup = "startup";
constexpr std::string_view kNoPhase = "(none)";
constexpr std::string_view kWholeRun = "all";

}  // namespace

uint32_t counted_step(const ProcessDefinitions& definitions, uint32_t step, PhaseSource phases) {
  const StepInfo* info = definitions.step(step);
  if (!info || !info->found || phases != PhaseSource::kProgram) return step;
  return info->after_named ? kNoStep : kStartupStep;
}

PhaseStep phase_step(const ProcessDefinitions& definitions, uint32_t step, PhaseSource phases) {
  if (const StepInfo* info = definitions.step(step)) return {definitions.text(info->phase), info->number};
  if (step == kNoStep) return {kNoPhase};
  return {phases != PhaseSource::kNone ? kStartup : kWholeRun};
}

}  // namespace lamina
