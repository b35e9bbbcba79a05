// The class of a layer, out of the name that it has in a report.
#pragma once

#include <string_view>

namespace lamina {

// `Linear` of `Linear(weight=bfloat16[4096, 4096])`; all of a name such as `(no module)`.
inline std::string_view class_of(std::string_view name) { return name.substr(0, name.find('(', 1)); }

}  // namespace lamina
