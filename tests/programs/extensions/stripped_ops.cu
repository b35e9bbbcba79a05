// The kernel of stripped_ops.
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

#include "stripped_ops.h"

__global__ void stripped_scale_kernel(float* data, int64_t count, float factor) {
  const int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < count) data[i] *= factor;
}

// In place, on any number of contiguous floats.
void scale(at::Tensor& x, double factor) {
  constexpr int kThreads = 256;
  TORCH_CHECK(x.is_cuda() && x.is_contiguous(), "scale: x is not a contiguous tensor on a GPU");
  TORCH_CHECK(x.scalar_type() == at::ScalarType::Float, "scale: x is not float32");
  const c10::cuda::CUDAGuard device_guard(x.device());
  const auto blocks = static_cast<unsigned>((x.numel() + kThreads - 1) / kThreads);
  stripped_scale_kernel<<<blocks, kThreads, 0, c10::cuda::getCurrentCUDAStream()>>>(
      static_cast<float*>(x.data_ptr()), x.numel(), static_cast<float>(factor));
  C10_CUDA_KERNEL_LAUNCH_CHECK();
}
