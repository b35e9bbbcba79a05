// Which steps of a report become bars.
#pragma once

#include <string>
#include <vector>

#include "report/plot/chart.h"
#include "report/tree/layer_report.h"

namespace lamina {

struct StepBar {
  std::string label;
  std::string phase;
  const std::vector<SummaryNode>* roots;  // points into the report
};

// A bar a step: of the phase or step that the options name, else of all phases that the program named, or of what there
// is. Of long phases every N-th step and the last; without an interval one is chosen, and `messages` says so.
// Throws InputError and UsageError.
std::vector<StepBar> choose_steps(const LayerReport& report, const ChartOptions& options, std::vector<std::string>& messages);

}  // namespace lamina
