// The one way to a LayerReport: from a profile folder, one file of it, or a layerwise JSON.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "report/attribution.h"
#include "report/layer_report.h"

namespace lamina {

struct LoadOptions {
  bool every_step = false;             // keep the details of every step, not of the first of each phase only
  std::optional<std::string> phase;    // `decode_7`: keep those of that step too
  StackView stacks = StackView::kUsual;  // of a profile
  std::optional<uint32_t> rank;        // of a profile: only that process
};

// Throws InputError. What is damaged or missing in a profile but leaves the rest of use is told on stderr, in a line a
// file.
LayerReport load_report(const std::string& path, const LoadOptions& options);

}  // namespace lamina
