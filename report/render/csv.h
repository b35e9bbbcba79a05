// The tables as CSV (RFC 4180): a line of headers, then an index, the fields of the layerwise JSON's entry, the depth in
// the tree and the path of the row. Names are whole; line ends and other control characters in them become spaces.
#pragma once

#include <string>
#include <vector>

#include "report/names/kernel_groups.h"
#include "report/tree/kernel_rows.h"
#include "report/tree/layer_report.h"

namespace lamina {

// The path: names from the root down, joined by `/`. That of a module of the model is its instance path where it is known.
std::string summary_csv(const std::vector<SummaryNode>& roots);
std::string model_csv(const std::vector<ModelNode>& roots);

// As the table on the screen, with the readable name beside the whole one, and the layers by their paths, `; ` between.
std::string kernel_csv(const std::vector<KernelRow>& kernels, const KernelGroups& groups);

}  // namespace lamina
