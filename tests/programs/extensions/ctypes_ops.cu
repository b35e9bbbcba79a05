// ctypes_ops: an ordinary C library with a launcher, that Python calls through ctypes. It shares the CUDA runtime that
// PyTorch has loaded.
#include <cuda_runtime.h>

__global__ void ctypes_scale_kernel(float* data, int count, float factor) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) data[i] *= factor;
}

// In place. A cudaError_t as a number.
extern "C" int ctypes_scale(float* data, int count, float factor, void* stream) {
  constexpr int kThreads = 256;
  ctypes_scale_kernel<<<(count + kThreads - 1) / kThreads, kThreads, 0, static_cast<cudaStream_t>(stream)>>>(
      data, count, factor);
  return cudaGetLastError();
}
