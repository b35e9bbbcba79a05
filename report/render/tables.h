// The two text tables, byte for byte as vLLM's layerwise profiler prints them.
#pragma once

#include <string>
#include <vector>

#include "report/tree/layer_report.h"

namespace lamina {

enum class Names {
  kShort,  // text is cut to its column
  kFull,   // the column is as wide as its longest text
};

std::string summary_table(const std::vector<SummaryNode>& roots, Names names = Names::kShort);

// The summary table with two columns more: the idle time of the GPU before each row, and its percentage of the span of `time`.
std::string idle_table(const std::vector<SummaryNode>& roots, const GpuTime& time, Names names = Names::kShort);

enum class Paths {
  kHidden,
  kShown,  // a column more, for the instance paths of modules
};
std::string model_table(const std::vector<ModelNode>& roots, Names names = Names::kShort, Paths paths = Paths::kHidden);

}  // namespace lamina
