// Names of kernels for people.
#pragma once

#include <string>
#include <string_view>

namespace lamina {

// A demangled kernel name without what tells nothing.
std::string short_kernel_name(std::string_view name);

}  // namespace lamina
