// The text tables: summary and model byte for byte as vLLM's layerwise profiler prints them, and the kernels.
#pragma once

#include <string>
#include <vector>

#include "report/names/kernel_groups.h"
#include "report/tree/kernel_rows.h"
#include "report/tree/layer_report.h"

namespace lamina {

enum class Names {
  kCut,    // as they are, cut to the column
  kShort,  // those of kernels readable (kernel_name.h), and cut to the column
  kFull,   // as they are; the column is as wide as its longest text
};

std::string summary_table(const std::vector<SummaryNode>& roots, Names names = Names::kCut);

// The summary table with two columns more: the idle time of the GPU before each row, and its percentage of the span of `time`.
std::string idle_table(const std::vector<SummaryNode>& roots, const GpuTime& time, Names names = Names::kCut);

enum class Paths {
  kHidden,
  kShown,  // a column more, for the instance paths of modules
};
std::string model_table(const std::vector<ModelNode>& roots, Names names = Names::kCut, Paths paths = Paths::kHidden);

std::string kernel_table(const std::vector<KernelRow>& kernels, const KernelGroups& groups, Names names);

}  // namespace lamina
