// The change as a list: each innermost layer once, with the time of its own kernels. The rows add up to the phase's change,
// which makes them what a person reads first and what a figure draws.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "report/diff/compare_reports.h"

namespace lamina {

struct ChangedLayer {
  std::vector<const LayerChange*> path;  // innermost first; points into the PhaseChange. Never empty
  TimeChange time;                       // of the kernels that the layer launches itself
  std::vector<const LayerChange*> kernels;  // of a layer in both reports: those that were swapped, added or removed

  const LayerChange& layer() const { return *path.front(); }
};

// What is beyond the noise, or has no estimate of it, comes first, and of these the largest change, up or down.
std::vector<ChangedLayer> changed_layers(const PhaseChange& phase);
std::vector<ChangedLayer> changed_layers(PhaseChange&&) = delete;

// The time of all of these.
TimeChange sum_of(std::span<const ChangedLayer> layers);

// A phase or layer that got slower by more than a limit.
struct Slower {
  std::string name;
  double percent = 0;
  std::optional<double> noise_percent;
};

// What limits are for: the phases of both reports; those that the program did not name only when there are no others.
std::vector<const PhaseChange*> checked_phases(const ReportChange& change);

// Phases whose time a step grew by more than `percent` of what it was, not counting what may be noise; and the same of each
// layer that both reports have, its name being the path from the phase.
std::vector<Slower> slower_phases(const ReportChange& change, double percent);
std::vector<Slower> slower_layers(const ReportChange& change, double percent);

}  // namespace lamina
