// The one way to a LayerReport: from a profile folder, one file of it, or a layerwise JSON.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "report/attribution/attribution.h"
#include "report/load/profile.h"
#include "report/tree/layer_report.h"

namespace lamina {

// What is kept of the steps of a phase.
enum class StepDetail {
  kNone,       // nothing
  kFirst,      // of the first one summary and model tree
  kSummaries,  // of each a summary, its rows in the order of the phase's; of the first the model tree too
  kModels,     // of each summary and model tree: memory grows with the number of kernels
};

struct LoadOptions {
  StepDetail steps = StepDetail::kFirst;
  std::optional<std::string> phase;    // `decode_7`: of that step summary and model tree too
  StackView stacks = StackView::kUsual;  // of a profile
  std::optional<uint32_t> rank;        // of a profile: only that process
  bool tell_problems = true;
  bool gpu_time = false;               // of a profile: idle time and GpuTime, also where no summaries of all steps are asked for
};

// Throws InputError. What is damaged or missing in a profile but leaves the rest of use is told on stderr, in a line a
// file. `processes` is set to those of a profile, to none of a layerwise JSON.
LayerReport load_report(const std::string& path, const LoadOptions& options, std::vector<Process>* processes = nullptr);

}  // namespace lamina
