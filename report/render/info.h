// What `lamina info` says, as text and as lines.
#pragma once

#include <string>
#include <vector>

#include "report/load/profile.h"
#include "report/tree/layer_report.h"

namespace lamina {

struct InfoLine {
  std::string label;
  std::string value;
  bool problem = false;  // something is missing or damaged
};

struct InfoSection {
  std::string title;
  std::vector<InfoLine> lines;
};

// A section a process, and the phases.
std::vector<InfoSection> info_sections(const std::vector<Process>& processes, const LayerReport& report);

// The same of a layerwise JSON, as far as its context tells; one that Lamina has not written tells nothing.
std::vector<InfoSection> info_sections(const LayerReport& report);

// Each process with its machine, phases and completeness account: every launch and every activity is in one line.
std::string info_text(const std::string& profile, const std::vector<Process>& processes, const LayerReport& report);

}  // namespace lamina
