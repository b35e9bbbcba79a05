// The one op of stripped_ops.
#pragma once

#include <ATen/core/Tensor.h>

void scale(at::Tensor& x, double factor);
