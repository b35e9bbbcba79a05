// The one kernel of nano_ops.
#pragma once

#include <cstddef>

// Multiplies each of `count` numbers on the GPU, on a cudaStream_t. Null, or an error's text.
const char* nano_scale(float* data, size_t count, float factor, void* stream);
