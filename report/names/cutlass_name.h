// Kernels that are one big template of cutlass, its tile somewhere in the arguments; those of FlashAttention too.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace lamina {

// `kernel`: the argument of cutlass::device_kernel or cutlass::Kernel2. Empty when nothing is understood.
std::string short_cutlass_name(std::string_view kernel);

// The first type of values anywhere in the text; may be empty.
std::string first_dtype(std::string_view text);

// `128x64`
std::string tile_text(const std::vector<long>& sides);

}  // namespace lamina
