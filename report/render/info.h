// The text of `lamina info`.
#pragma once

#include <string>
#include <vector>

#include "report/load/profile.h"
#include "report/tree/layer_report.h"

namespace lamina {

// Each process with its machine, phases and completeness account: every launch and every activity is in one line.
std::string info_text(const std::string& profile, const std::vector<Process>& processes, const LayerReport& report);

}  // namespace lamina
