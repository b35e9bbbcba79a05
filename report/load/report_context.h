// The `context` of the layerwise JSON, from what the recorder noted about processes and devices.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "report/load/profile.h"

namespace lamina {

// Keys as formats of the layerwise JSON have them; what is not known is null. Values of --context and of
// `lamina:context {json}` marks replace and add. Facts that JSON has no place for stand under `lamina`.
nlohmann::ordered_json report_context(const std::vector<Process>& processes);

}  // namespace lamina
