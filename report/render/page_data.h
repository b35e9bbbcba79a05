// What the HTML page shows, as compact JSON: a table of strings, and trees as columns of numbers. page/data.js reads it.
//
//   title, version          text
//   strings                 every name, trace and path; elsewhere numbers of this table
//   short, group, colour    by string: the short name's string, the group of a kernel, the colour of a layer; -1 none
//   groups                  [{name, colour}]
//   ranks                   names; where there are several, the first is all of them together
//   context                 [[key, value]] of the layerwise JSON's context
//   account                 [{title, lines: [[label, value, problem]]}]
//   phases                  [{name, all, depth, string, layer, step_rows, views, models}]
//     rows of the summary   all: how many there are, of which these are the heaviest; depth, string, layer (0/1): a column each
//     views                 [{rank, step (0: the sum), sequences, gpu, total, time, calls, idle}]: the numbers of those rows; idle where
//                           there is any, gpu [span, busy, communication, exposed communication] where known
//     step_rows             where steps have the numbers of some rows only: which
//     models                [{rank, step, all, total, depth, string, layer, time, cpu, trace, path}]: call by call
//
// Times are whole nanoseconds. Colours are 0xRRGGBB.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "report/names/kernel_groups.h"
#include "report/render/info.h"
#include "report/tree/layer_report.h"

namespace lamina {

struct RankReport {
  std::string name;
  LayerReport report;
};

struct Page {
  std::string title;
  std::vector<RankReport> ranks;  // at least one; where there are several, the first is all of them together
  std::vector<InfoSection> account;
  KernelGroups groups = {};
};

// So that a page stays one that a browser opens at once. Past them the heaviest rows are kept, and the page says so.
struct PageLimits {
  size_t model_rows = 200'000;    // of all model trees together
  size_t summary_rows = 200'000;  // of one phase
  size_t step_cells = 500'000;     // of one phase: rows times steps and ranks
};

nlohmann::ordered_json page_data(const Page& page, const PageLimits& limits = {});

}  // namespace lamina
