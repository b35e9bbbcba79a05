// The summary of a model tree, and sums of summaries.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "report/tree/layer_report.h"

namespace lamina {

// The name under which the summary merges a layer: the instance number of a list is left out, so that `layers.0`,
// `layers.1(weight=…)` become `layers.*`, `layers.*(weight=…)`.
std::string merged_name(std::string_view layer);

// Whether a row is of a kernel, memcpy or memset: these have neither time on the host nor anything below.
bool is_activity(const SummaryNode& node);
bool is_activity(const ModelNode& node);

// Rows with the same path of merged names become one, in order of first appearance; `invocations` counts them.
std::vector<SummaryNode> summarize(const std::vector<ModelNode>& model);

// Adds `from` to `into`, path by path. Percentages are left to set_percentages.
void add_summary(std::vector<SummaryNode>& into, const std::vector<SummaryNode>& from);

// pct_cuda_time of every row: of the sum over the roots, 0 when that is 0.
void set_percentages(std::vector<SummaryNode>& roots);
void set_percentages(std::vector<ModelNode>& roots);

}  // namespace lamina
