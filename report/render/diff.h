// The comparison of two reports as text and as JSON.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "report/diff/compare_reports.h"

namespace lamina {

struct DiffTextOptions {
  std::string before, after;  // what the reports are called
  bool whole_tree = false;    // every row in the order of the tree; else the layers that changed most
  bool full_names = false;    // not cut to the column, kernels as they are demangled
};

std::string diff_text(const ReportChange& change, const DiffTextOptions& options);

// {
//   "before", "after": what the reports are called,
//   "context": [{"name", "before", "after"}...]           facts that differ; null: not known
//   "phases": [{"name", "steps_before", "steps_after",    0: the phase is only in the other report
//               TIMES, "layers": [row...]}...]
// }
// row   = {"kind": "layer"|"kernel", "change": "same"|"renamed"|"swapped"|"added"|"removed",
//          "names_before": [...], "names_after": [...],   several: kernels in place of several; none: nothing was there
//          TIMES, "share_pct", "children": [row...]}
// TIMES = "before_us", "after_us": mean of a step; "change_us", "change_pct" (null: no time before, but after),
//         "noise_us" (95 % confidence, see noise.h; null: a single step has no estimate), "within_noise" (null likewise)
// share_pct is of the phase's change: those of the roots add up to 100, those of children to their parent's; 0 when the
// phase did not change. Names may hold bytes that are not UTF-8: dump the result with error_handler_t::replace.
nlohmann::ordered_json diff_json(const ReportChange& change, const std::string& before, const std::string& after);

}  // namespace lamina
