// What the commands share: which phases and steps of a report the user means, and what a file made of a profile is called.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "report/names/kernel_groups.h"
#include "report/tree/layer_report.h"

namespace lamina {

// A phase, or one step of it. Points into the report that it was chosen from.
struct Choice {
  const PhaseReport* phase;
  const StepReport* step = nullptr;

  const std::vector<SummaryNode>& summary() const;  // of a phase the sum of its steps
  const StepReport* model_step() const;             // of a phase the first; none when no step is kept
  const std::vector<ModelNode>& model() const;
  std::string name() const;  // `decode`, `decode_7`
};

// What --phase names: a phase, or a step such as decode_7 (which the report holds if it was loaded with
// LoadOptions::phase); without a name every phase. Throws InputError with the phases there are; `profile` is for it.
std::vector<Choice> choose(const LayerReport& report, std::string_view phase, const std::string& profile);

// As in `prefill, decode (32 steps)`.
std::string phase_list(const LayerReport& report);

// The built-in groups of kernels, or those of the file that --groups names before them. Throws InputError.
KernelGroups choose_groups(const std::string& file);

// The profile's name with `ending` instead of a slash at its end: `run/` and `.json` give `run.json`.
std::string beside_profile(std::string profile, std::string_view ending);

}  // namespace lamina
