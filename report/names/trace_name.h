// Traces for people: the ops around a kernel.
#pragma once

#include <string>
#include <string_view>

namespace lamina {

// The innermost op keeps its inputs, those around it only their names: `mm(bfloat16[4, 4096], …) <- linear`.
std::string short_trace(std::string_view trace);

}  // namespace lamina
