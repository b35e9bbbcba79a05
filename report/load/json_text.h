// Parses JSON that may be hostile: bounded depth, no key twice, and a time that grows with the text only.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace lamina {

// Deeper documents are refused, so that what walks one may recurse. A layer tree takes two levels a layer.
inline constexpr size_t kMaxJsonDepth = 1000;

// Throws InputError with the file name and the place.
nlohmann::ordered_json parse_json(const std::string& text, const std::string& file_name);

}  // namespace lamina
