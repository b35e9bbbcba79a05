// The layerwise JSON, as vLLM's layerwise profiler and `lamina json` write it.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "report/tree/layer_report.h"

namespace lamina {

// The phases that the format has keys for.
inline constexpr std::string_view kPrefill = "prefill";
inline constexpr std::string_view kDecode = "decode";

// Throws InputError with the file name and the place in the document.
LayerReport read_layerwise_json(const std::string& text, const std::string& file_name);

// Of each phase the steps that the report holds: load it with every step. Names may hold bytes that are not UTF-8: dump
// the result with error_handler_t::replace.
nlohmann::ordered_json write_layerwise_json(const LayerReport& report);

// Whole counts as whole numbers.
nlohmann::ordered_json json_count(double count);

// The fields of one row, in their order.
nlohmann::ordered_json json_entry(const SummaryNode& node);
nlohmann::ordered_json json_entry(const ModelNode& node);

}  // namespace lamina
