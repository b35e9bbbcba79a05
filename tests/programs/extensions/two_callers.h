// What the two halves of two_callers share: the model, and the one launcher of its kernel.
#pragma once

#include <cuda_runtime_api.h>

// Kept as a function of its own by the compiler: neither inlined nor cloned nor merged with one that does the same.
#define KEPT __attribute__((noipa))

constexpr int kWidth = 64;
constexpr int kLayers = 4;
constexpr int kMatrix = kWidth * kWidth;

struct Model {
  float *attention_weights, *mlp_weights;  // a matrix a layer
  float *hidden, *inner;                   // kWidth numbers each
  cudaStream_t stream;
};

// to = tanh(weights * from)
void launch_gemm(const Model& model, const float* weights, const float* from, float* to);

// Ends the program with status 1 unless the call worked.
void check(cudaError_t error, const char* call);
#define CHECK(call) check((call), #call)
