// The parts of a tree of layers that a bar stacks: kernels, or the innermost modules.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "report/plot/chart.h"
#include "report/tree/layer_report.h"

namespace lamina {

struct LayerSegment {
  std::vector<std::string> path;  // names as shown, innermost first
  double us = 0;
};

// What a layer of this name is called in a figure.
std::string shown_name(const std::string& name);

// In the order of the tree. A module's kernels beside submodules are a segment of that module. `found` gets the folds that
// are in the tree.
std::vector<LayerSegment> layer_segments(const std::vector<SummaryNode>& roots, const ChartOptions& options, std::set<std::string>& found);

// Names for paths that are not unique: ` <- parent` is added until they are.
std::vector<std::string> unique_names(const std::vector<std::vector<std::string>>& paths);

}  // namespace lamina
