// The layers of a phase with the time of each in every step.
#pragma once

#include <string>
#include <vector>

#include "report/diff/noise.h"
#include "report/tree/layer_report.h"

namespace lamina {

struct TimedNode {
  std::string name;
  StepTimes times;
  std::vector<TimedNode> children;

  // A row of the summary does not say what it is. A layer without GPU work is no kernel either.
  bool is_kernel() const { return children.empty() && times.mean_us > 0; }
};

// The means are those of the phase's sum, over all its steps; where a step lacks a row it took no time in it.
std::vector<TimedNode> timed_tree(const PhaseReport& phase);

}  // namespace lamina
