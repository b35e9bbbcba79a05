// Kernel names that are no C++: those of cuBLAS, cuDNN, cutlass, NCCL, Triton and others, with their words between `_`.
#pragma once

#include <string>
#include <string_view>

namespace lamina {

// Empty when the name is of no known family.
std::string short_plain_name(std::string_view name);

}  // namespace lamina
