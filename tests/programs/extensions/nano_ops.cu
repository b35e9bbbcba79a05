// The kernel of nano_ops, apart from the bindings: nvcc need not read nanobind's headers.
#include <cuda_runtime.h>

#include "nano_ops.h"

__global__ void nano_scale_kernel(float* data, size_t count, float factor) {
  const size_t i = size_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < count) data[i] *= factor;
}

const char* nano_scale(float* data, size_t count, float factor, void* stream) {
  constexpr int kThreads = 256;
  const auto blocks = static_cast<unsigned>((count + kThreads - 1) / kThreads);
  nano_scale_kernel<<<blocks, kThreads, 0, static_cast<cudaStream_t>(stream)>>>(data, count, factor);
  const cudaError_t error = cudaGetLastError();
  return error == cudaSuccess ? nullptr : cudaGetErrorString(error);
}
