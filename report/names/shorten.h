// Names too long for their place, shortened in the middle.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace lamina {

// No name longer than `limit` (at least 8) characters; what is cut out becomes an ellipsis. Names that differ still
// differ when shortened: the cut moves to where it keeps the difference. Names are valid UTF-8.
std::vector<std::string> shorten_names(std::span<const std::string> names, size_t limit);

}  // namespace lamina
