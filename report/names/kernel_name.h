// Names of kernels for people.
#pragma once

#include <string>
#include <string_view>

namespace lamina {

// A demangled kernel name in a few words: the function, and in parentheses what tells it from others of its kind, such as
// operation, type, tile, epilogue: `vectorized_elementwise(add, float)`, `nvjet_sm90(bfloat16, 128x8x64, splitK, TNT)`. Two
// kernels may have the same short name. What is not understood stays, and so do memcpys and memsets; never empty unless
// `name` is. Give it the whole name, not a short one.
std::string short_kernel_name(std::string_view name);

}  // namespace lamina
