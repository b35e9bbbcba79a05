// One JSON object for one record, for `lamina dump`.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "report/records/definitions.h"
#include "report/records/profile_file.h"

namespace lamina {

// The record's kind and fields, with strings in place of string ids. A record that is too short says so.
nlohmann::ordered_json raw_json(const RecordView& record, const ProcessDefinitions& definitions);

}  // namespace lamina
