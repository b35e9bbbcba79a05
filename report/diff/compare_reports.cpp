#include "report/diff/compare_reports.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "report/diff/match_siblings.h"
#include "report/diff/timed_tree.h"

namespace lamina {
namespace {

constexpr std::string_view kFates[] = {"same", "renamed", "swapped", "added", "removed"};

bool have_same_steps(const PhaseReport& before, const PhaseReport& after) {
  return std::ranges::equal(before.steps, after.steps, {}, &StepReport::number, &StepReport::number);
}

class TreeComparison {
 public:
  TreeComparison(const PhaseReport& before, const PhaseReport& after)
      : no_time_{StepTimes::zero(before.steps.size()), StepTimes::zero(after.steps.size()),
                 have_same_steps(before, after) ? StepPairs::kSameSteps : StepPairs::kOtherSteps} {}

  std::vector<LayerChange> compare(const std::vector<TimedNode>& before, const std::vector<TimedNode>& after) const {
    std::vector<LayerChange> rows;
    for (const Match& match : match_siblings(before, after)) {
      LayerChange& row = rows.emplace_back();
      row.time = no_time_;
      row.kernel = true;
      const TimedNode* parent_before = take(row, before, match.before, row.names_before, row.time.before);
      const TimedNode* parent_after = take(row, after, match.after, row.names_after, row.time.after);
      row.children = compare(children_of(parent_before), children_of(parent_after));
    }
    return rows;
  }

  const TimeChange& no_time() const { return no_time_; }

 private:
  // Adds the chosen nodes to the row; the last of them, or null. Only kernels, which have no children, are ever several.
  static const TimedNode* take(LayerChange& row, const std::vector<TimedNode>& nodes, const std::vector<size_t>& chosen,
                               std::vector<std::string>& names, StepTimes& times) {
    const TimedNode* last = nullptr;
    for (size_t i : chosen) {
      last = &nodes[i];
      names.push_back(last->name);
      times += last->times;
      row.kernel &= last->is_kernel();
    }
    return last;
  }

  static const std::vector<TimedNode>& children_of(const TimedNode* node) {
    static const std::vector<TimedNode> kNone;
    return node ? node->children : kNone;
  }

  TimeChange no_time_;  // of all steps: also for rows that one of the reports lacks
};

PhaseChange compare_phases(const PhaseReport& before, const PhaseReport& after) {
  PhaseChange change{before.name.empty() ? after.name : before.name, before.step_count, after.step_count, {}, {}};
  TreeComparison comparison(before, after);
  change.layers = comparison.compare(timed_tree(before), timed_tree(after));
  change.time = comparison.no_time();
  for (const LayerChange& layer : change.layers) {
    change.time.before += layer.time.before;
    change.time.after += layer.time.after;
  }
  return change;
}

const PhaseReport& phase_of(const LayerReport& report, const std::string& name) {
  static const PhaseReport kNone;
  auto found = std::ranges::find(report.phases, name, &PhaseReport::name);
  return found != report.phases.end() ? *found : kNone;
}

}  // namespace

std::string_view name_of(Fate fate) { return kFates[static_cast<size_t>(fate)]; }

std::optional<double> TimeChange::percent() const {
  if (us() == 0) return 0;
  if (before.mean_us <= 0) return std::nullopt;
  return 100 * us() / before.mean_us;
}

bool TimeChange::within_noise() const {
  std::optional<double> limit = noise();
  return limit && std::abs(us()) <= *limit;
}

Fate LayerChange::fate() const {
  if (names_before.empty()) return Fate::kAdded;
  if (names_after.empty()) return Fate::kRemoved;
  if (names_before == names_after) return Fate::kSame;
  return kernel ? Fate::kSwapped : Fate::kRenamed;
}

ReportChange compare_reports(const LayerReport& before, const LayerReport& after) {
  ReportChange change{compare_contexts(before, after), {}};
  for (const PhaseReport& phase : before.phases) change.phases.push_back(compare_phases(phase, phase_of(after, phase.name)));
  for (const PhaseReport& phase : after.phases) {
    if (phase_of(before, phase.name).step_count == 0) change.phases.push_back(compare_phases({}, phase));
  }
  return change;
}

}  // namespace lamina
