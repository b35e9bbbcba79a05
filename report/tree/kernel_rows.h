// The kernels of a phase or step, each once: how often, how long, and for which layers.
#pragma once

#include <string>
#include <vector>

#include "report/tree/layer_report.h"

namespace lamina {

// Memcpys and memsets count as kernels here. Times in microseconds.
struct KernelRow {
  std::string name;
  double count = 0;
  double total_us = 0;
  double min_us = 0;
  double max_us = 0;
  double pct_cuda_time = 0;                   // 0..100, of all kernels
  std::vector<std::string> layers = {};       // the names of those that launch it, each once, in order of appearance
  std::vector<std::string> layer_paths = {};  // and where they stand: names from the root down, joined by `/`

  double mean_us() const { return count > 0 ? total_us / count : 0; }
};

// Those with the most time first. A summary from a layerwise JSON does not know its kernels: the models of the steps do.
std::vector<KernelRow> kernel_rows(const PhaseReport& phase);
std::vector<KernelRow> kernel_rows(const StepReport& step);
std::vector<KernelRow> kernel_rows(const std::vector<SummaryNode>& summary);

}  // namespace lamina
