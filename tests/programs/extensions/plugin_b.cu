// plugin_b: the library that takes the place of plugin_a. It links in a CUDA runtime of its own.
#include <cuda_runtime.h>

__global__ void plugin_b_kernel(float* data, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) data[i] *= 0.75f;
}

// Done when it returns: what it launched must not outlive its code. A cudaError_t as a number.
extern "C" int plugin_run(float* data, int count) {
  constexpr int kThreads = 64;
  plugin_b_kernel<<<(count + kThreads - 1) / kThreads, kThreads>>>(data, count);
  const cudaError_t error = cudaGetLastError();
  return error == cudaSuccess ? cudaDeviceSynchronize() : error;
}
