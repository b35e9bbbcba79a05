// What changed between two reports, layer by layer. Times are per step, so that profiles of different length compare.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "report/diff/noise.h"
#include "report/tree/layer_report.h"

namespace lamina {

struct TimeChange {
  StepTimes before, after;
  StepPairs pairs = StepPairs::kOtherSteps;

  double us() const { return after.mean_us - before.mean_us; }
  std::optional<double> percent() const;  // of the time before; nothing where there was none and is some
  std::optional<double> noise() const { return noise_us(before, after, pairs); }
  bool within_noise() const;  // false where the noise is not known
};

enum class Fate { kSame, kRenamed, kSwapped, kAdded, kRemoved };

// A row: a layer or kernel of both reports or of one, or some kernels in place of others.
struct LayerChange {
  std::vector<std::string> names_before, names_after;  // none: there was nothing
  bool kernel = false;
  TimeChange time;
  std::vector<LayerChange> children;

  Fate fate() const;
  const std::vector<std::string>& names() const { return names_after.empty() ? names_before : names_after; }
};

struct PhaseChange {
  std::string name;
  uint64_t steps_before = 0, steps_after = 0;  // 0: the phase is only in the other report
  TimeChange time;                             // of all layers
  std::vector<LayerChange> layers;

  bool in_both() const { return steps_before > 0 && steps_after > 0; }
};

// A fact of the context that is not the same in both reports; nothing: not known.
struct ContextDifference {
  std::string name;
  std::optional<std::string> before, after;
};

struct ReportChange {
  std::vector<ContextDifference> context;
  std::vector<PhaseChange> phases;  // as in the first report, then those of the second alone
};

// The names of fates in texts and JSON: same, renamed, swapped, added, removed.
std::string_view name_of(Fate fate);

// Load both with StepDetail::kSummaries. How rows are matched: match_siblings.h.
ReportChange compare_reports(const LayerReport& before, const LayerReport& after);

// Model, batch size, GPU, types: what makes a comparison one of apples and oranges.
std::vector<ContextDifference> compare_contexts(const LayerReport& before, const LayerReport& after);

}  // namespace lamina
