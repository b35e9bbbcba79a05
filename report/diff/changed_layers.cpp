#include "report/diff/changed_layers.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "report/tree/step_name.h"

namespace lamina {
namespace {

constexpr double kNothing = 1e-6;  // microseconds: what differences of sums leave

class Collector {
 public:
  std::vector<ChangedLayer> layers;

  void visit(const LayerChange& row) {
    path_.push_back(&row);
    add_own(row);
    for (const LayerChange& child : row.children) {
      if (!child.kernel) visit(child);
    }
    path_.pop_back();
  }

 private:
  // What is not in a child layer is the layer's own.
  void add_own(const LayerChange& row) {
    ChangedLayer own{{path_.rbegin(), path_.rend()}, row.time, {}};
    bool in_both = !row.names_before.empty() && !row.names_after.empty();
    for (const LayerChange& child : row.children) {
      if (child.kernel) {
        if (in_both && child.fate() != Fate::kSame) own.kernels.push_back(&child);
      } else {
        own.time.before -= child.time.before;
        own.time.after -= child.time.after;
      }
    }
    bool has_time = own.time.before.mean_us > kNothing || own.time.after.mean_us > kNothing;
    if (has_time || !own.kernels.empty()) layers.push_back(std::move(own));
  }

  std::vector<const LayerChange*> path_;
};

void add_slower(std::vector<Slower>& list, const std::string& name, const TimeChange& time, double percent) {
  if (time.before.mean_us <= 0) return;
  std::optional<double> change = time.percent();
  std::optional<double> noise = time.noise();
  if (noise) noise = 100 * *noise / time.before.mean_us;
  if (*change - noise.value_or(0) > percent) list.push_back({name, *change, noise});
}

void add_slower_layers(std::vector<Slower>& list, const std::string& path, const std::vector<LayerChange>& rows, double percent) {
  for (const LayerChange& row : rows) {
    if (row.kernel || row.names_before.empty() || row.names_after.empty()) continue;
    std::string name = path + " > " + row.names_after.front();
    add_slower(list, name, row.time, percent);
    add_slower_layers(list, name, row.children, percent);
  }
}

}  // namespace

std::vector<ChangedLayer> changed_layers(const PhaseChange& phase) {
  Collector collector;
  for (const LayerChange& row : phase.layers) collector.visit(row);
  auto size = [](const ChangedLayer& layer) { return std::abs(layer.time.us()); };
  std::ranges::stable_sort(collector.layers, std::greater(), size);
  std::ranges::stable_partition(collector.layers, [](const ChangedLayer& layer) { return !layer.time.within_noise(); });
  return std::move(collector.layers);
}

TimeChange sum_of(std::span<const ChangedLayer> layers) {
  if (layers.empty()) return {};
  TimeChange sum = layers.front().time;
  for (const ChangedLayer& layer : layers.subspan(1)) {
    sum.before += layer.time.before;
    sum.after += layer.time.after;
  }
  return sum;
}

std::vector<const PhaseChange*> checked_phases(const ReportChange& change) {
  std::vector<const PhaseChange*> phases, unnamed;
  for (const PhaseChange& phase : change.phases) {
    if (phase.in_both()) (is_unnamed_phase(phase.name) ? unnamed : phases).push_back(&phase);
  }
  return phases.empty() ? unnamed : phases;
}

std::vector<Slower> slower_phases(const ReportChange& change, double percent) {
  std::vector<Slower> list;
  for (const PhaseChange* phase : checked_phases(change)) add_slower(list, phase->name, phase->time, percent);
  return list;
}

std::vector<Slower> slower_layers(const ReportChange& change, double percent) {
  std::vector<Slower> list;
  for (const PhaseChange* phase : checked_phases(change)) add_slower_layers(list, phase->name, phase->layers, percent);
  return list;
}

}  // namespace lamina
