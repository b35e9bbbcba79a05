// What a stacked-bar figure shows, without where and how: the bars, the names of their segments, the words around them.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "report/tree/layer_report.h"

namespace lamina {

struct Bar {
  std::string label = {};   // `prefill`, `decode_7-seqs-32`
  std::string group = {};   // the phase: each weighs the same when names are ranked, however many bars it has
  double total_us = 0;      // what is 100 %: may be more than the segments, where some layers were ignored
  std::vector<double> us = {};  // of each name of the chart; 0: no segment
};

struct BarChart {
  std::string title = {};
  std::string subtitle = {};            // empty: none
  std::vector<std::string> names = {};  // whole and unique; the lowest segment first
  std::vector<Bar> bars = {};
};

enum class PlotLevel { kModule, kKernel };

struct ChartOptions {
  PlotLevel level = PlotLevel::kModule;
  size_t top_k = 9;               // names; 0: all that can be told apart
  std::set<std::string> folds;    // nodes shown as one segment: by whole name, or by class (`Attention`)
  bool ignore_sampler = false;    // nor the computation of logits
  std::string phase;              // or step; empty: all
  std::optional<uint32_t> step_interval;
  std::string profile;            // for the title and messages
};

// `messages`: what the user should know, a line each. Throws InputError when there is nothing to draw, or no such phase.
BarChart make_chart(const LayerReport& report, const ChartOptions& options, std::vector<std::string>& messages);

// Keeps the `count` - 1 names that take the largest share of their bars; the rest become `others`, the highest segment.
// The largest is the lowest. Does the same for charts that were made otherwise.
void keep_largest(BarChart& chart, size_t count);

}  // namespace lamina
