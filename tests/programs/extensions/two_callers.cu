// The kernel of two_callers and its launcher.
#include "two_callers.h"

// Sums in a fixed order, so that two runs give the same bits.
__global__ void gemm_kernel(const float* weights, const float* from, float* to) {
  float sum = 0.0f;
  for (int i = 0; i < kWidth; ++i) sum += weights[threadIdx.x * kWidth + i] * from[i];
  to[threadIdx.x] = tanhf(sum);
}

KEPT void launch_gemm(const Model& model, const float* weights, const float* from, float* to) {
  gemm_kernel<<<1, kWidth, 0, model.stream>>>(weights, from, to);
  CHECK(cudaGetLastError());
}
