// The kernels of mini_llm. Activations are rows of one token each, in bf16; every sum is kept in fp32 and taken in a
// fixed order (no atomics), so that two runs give the same bits.
#pragma once

#include <cuda_bf16.h>
#include <math.h>
#include <stddef.h>
#include <stdint.h>

using bf16 = __nv_bfloat16;

constexpr int kWarpSize = 32;
constexpr int kBlockSize = 256;  // every kernel but advance_positions_kernel runs blocks of this size
constexpr int kWarps = kBlockSize / kWarpSize;

// The query, key and value heads that one row of the qkv projection holds, in this order.
struct Heads {
  int query, kv, dim;
  __host__ __device__ int query_size() const { return query * dim; }
  __host__ __device__ int kv_size() const { return kv * dim; }
  __host__ __device__ int row_size() const { return query_size() + 2 * kv_size(); }
};

// Where the rows of a step stand: `tokens` rows for each sequence, the first of them at position *start. The position
// is read from device memory, not passed by value, so that one captured graph serves every step.
struct Span {
  const int* start;
  int tokens;
  __device__ int sequence(int row) const { return row / tokens; }
  __device__ int position(int row) const { return *start + row % tokens; }
};

// Keys and values of one layer, each [sequence][position][kv head][dim].
struct KvCache {
  bf16* keys;
  bf16* values;
  int context;
  __device__ size_t offset(int sequence, int position, const Heads& heads) const {
    return (size_t(sequence) * context + position) * heads.kv_size();
  }
};

// SplitMix64 as a counter-based generator: the n-th number of a seed, in any order.
__host__ __device__ inline uint64_t mix64(uint64_t z) {
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
  return z ^ (z >> 31);
}

__host__ __device__ inline uint64_t random_bits(uint64_t seed, uint64_t n) {
  constexpr uint64_t kGolden = 0x9E3779B97F4A7C15ull;
  return mix64(mix64(seed + kGolden) + (n + 1) * kGolden);
}

// Uniform numbers in [centre - width, centre + width).
__global__ void init_weights_kernel(bf16* weights, size_t count, float centre, float width, uint64_t seed) {
  const size_t stride = size_t(gridDim.x) * blockDim.x;
  for (size_t i = size_t(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += stride) {
    const float unit = float(random_bits(seed, i) >> 40) * 0x1p-23f - 1.0f;
    weights[i] = __float2bfloat16(centre + width * unit);
  }
}

__global__ void embedding_kernel(bf16* out, const bf16* table, const int* ids, int hidden) {
  const size_t to = size_t(blockIdx.x) * hidden;
  const size_t from = size_t(ids[blockIdx.x]) * hidden;
  for (int i = threadIdx.x; i < hidden; i += blockDim.x) out[to + i] = table[from + i];
}

__device__ inline float warp_sum(float value) {
  for (int offset = kWarpSize / 2; offset > 0; offset /= 2) value += __shfl_xor_sync(0xffffffffu, value, offset);
  return value;
}

// The sum over the block, for every thread. Once a kernel only: a second call could overwrite sums still being read.
__device__ inline float block_sum(float value) {
  __shared__ float sums[kWarps];
  value = warp_sum(value);
  if (threadIdx.x % kWarpSize == 0) sums[threadIdx.x / kWarpSize] = value;
  __syncthreads();
  float total = 0.0f;
  for (int warp = 0; warp < kWarps; ++warp) total += sums[warp];
  return total;
}

// residual = x (+ residual), out = the RMS norm of residual. A block a row; each thread rereads only what it wrote.
__global__ void rms_norm_kernel(bf16* out, bf16* residual, const bf16* x, const bf16* weight, int hidden, bool add) {
  constexpr float kEpsilon = 1e-5f;
  const size_t row = size_t(blockIdx.x) * hidden;
  float squares = 0.0f;
  for (int i = threadIdx.x; i < hidden; i += blockDim.x) {
    float value = __bfloat162float(x[row + i]);
    if (add) value += __bfloat162float(residual[row + i]);
    residual[row + i] = __float2bfloat16(value);
    squares += value * value;
  }
  const float scale = rsqrtf(block_sum(squares) / hidden + kEpsilon);
  for (int i = threadIdx.x; i < hidden; i += blockDim.x) {
    out[row + i] = __float2bfloat16(__bfloat162float(residual[row + i]) * scale * __bfloat162float(weight[i]));
  }
}

// Rotates the query and key heads of each row in place, pairing dimension i with i + dim / 2. A block a row.
__global__ void rotary_embedding_kernel(bf16* qkv, Heads heads, Span span) {
  constexpr float kBase = 10000.0f;
  const int half = heads.dim / 2;
  bf16* row = qkv + size_t(blockIdx.x) * heads.row_size();
  const float position = float(span.position(blockIdx.x));
  for (int pair = threadIdx.x; pair < (heads.query + heads.kv) * half; pair += blockDim.x) {
    const int i = pair % half;
    bf16* head = row + pair / half * heads.dim;
    float sine, cosine;
    sincosf(position * powf(kBase, -2.0f * i / heads.dim), &sine, &cosine);
    const float a = __bfloat162float(head[i]), b = __bfloat162float(head[i + half]);
    head[i] = __float2bfloat16(a * cosine - b * sine);
    head[i + half] = __float2bfloat16(b * cosine + a * sine);
  }
}

// Writes the keys and values of each row to their place in the cache. A block a row.
__global__ void reshape_and_cache_kernel(KvCache cache, const bf16* qkv, Heads heads, Span span) {
  const int row = blockIdx.x;
  const bf16* keys = qkv + size_t(row) * heads.row_size() + heads.query_size();
  const bf16* values = keys + heads.kv_size();
  const size_t to = cache.offset(span.sequence(row), span.position(row), heads);
  for (int i = threadIdx.x; i < heads.kv_size(); i += blockDim.x) {
    cache.keys[to + i] = keys[i];
    cache.values[to + i] = values[i];
  }
}

// Joins the partial softmax of each warp (its maximum, its sum, its weighted values) and writes one head of one row.
template <int kHeadDim>
__device__ void join_warps(bf16* out, float max, float sum, const float* weighted) {
  __shared__ float maxima[kWarps], sums[kWarps], partial[kWarps][kHeadDim];
  const int warp = threadIdx.x / kWarpSize, lane = threadIdx.x % kWarpSize;
  if (lane == 0) {
    maxima[warp] = max;
    sums[warp] = sum;
  }
  for (int i = 0; i < kHeadDim / kWarpSize; ++i) partial[warp][i * kWarpSize + lane] = weighted[i];
  __syncthreads();
  if (threadIdx.x >= kHeadDim) return;
  float highest = maxima[0], total = 0.0f, value = 0.0f;
  for (int w = 1; w < kWarps; ++w) highest = fmaxf(highest, maxima[w]);
  for (int w = 0; w < kWarps; ++w) {
    const float scale = expf(maxima[w] - highest);  // 0 for a warp without a key: its maximum is -infinity
    total += sums[w] * scale;
    value += partial[w][threadIdx.x] * scale;
  }
  out[threadIdx.x] = __float2bfloat16(value / total);
}

// Causal attention over the cache, for prefill and decode: a block for each row and head, the keys dealt out to its
// warps. Softmax runs on line, so that shared memory does not depend on a length that a graph could not change.
template <int kHeadDim>
__global__ void attention_kernel(bf16* out, const bf16* qkv, KvCache cache, Heads heads, Span span) {
  constexpr int kPerLane = kHeadDim / kWarpSize;
  const int row = blockIdx.x, head = blockIdx.y;
  const int warp = threadIdx.x / kWarpSize, lane = threadIdx.x % kWarpSize;
  const bf16* row_query = qkv + size_t(row) * heads.row_size() + head * kHeadDim;
  const int first_dim = head / (heads.query / heads.kv) * kHeadDim + lane;
  float query[kPerLane], weighted[kPerLane] = {};
  for (int i = 0; i < kPerLane; ++i) {
    query[i] = __bfloat162float(row_query[i * kWarpSize + lane]) * rsqrtf(float(kHeadDim));
  }
  float max = -INFINITY, sum = 0.0f;
  for (int position = warp; position <= span.position(row); position += kWarps) {
    const size_t from = cache.offset(span.sequence(row), position, heads) + first_dim;
    float score = 0.0f;
    for (int i = 0; i < kPerLane; ++i) score += query[i] * __bfloat162float(cache.keys[from + i * kWarpSize]);
    score = warp_sum(score);
    const float new_max = fmaxf(max, score);
    const float keep = expf(max - new_max), weight = expf(score - new_max);
    sum = sum * keep + weight;
    for (int i = 0; i < kPerLane; ++i) {
      weighted[i] = weighted[i] * keep + weight * __bfloat162float(cache.values[from + i * kWarpSize]);
    }
    max = new_max;
  }
  join_warps<kHeadDim>(out + size_t(row) * heads.query_size() + head * kHeadDim, max, sum, weighted);
}

// out = silu(gate) * up, where a row of gate_up holds `size` gates, then as many ups. Grid: rows, parts of a row.
__global__ void silu_and_mul_kernel(bf16* out, const bf16* gate_up, int size) {
  const int i = blockIdx.y * blockDim.x + threadIdx.x;
  if (i >= size) return;
  const bf16* row = gate_up + size_t(blockIdx.x) * 2 * size;
  const float gate = __bfloat162float(row[i]), up = __bfloat162float(row[size + i]);
  out[size_t(blockIdx.x) * size + i] = __float2bfloat16(gate / (1.0f + expf(-gate)) * up);
}

// The most likely token of each sequence (of equals the lowest), as the next step's input and into the row of the
// sequence in `output`: its column counts from the end of the prompt. A block a sequence.
__global__ void argmax_kernel(int* next, int* output, int output_size, const float* logits, int vocab, Span span,
                              int prompt) {
  __shared__ float best[kBlockSize];
  __shared__ int best_id[kBlockSize];
  const int sequence = blockIdx.x, me = threadIdx.x;
  const float* row = logits + size_t(sequence) * vocab;
  best[me] = -INFINITY;
  best_id[me] = 0;  // stays a valid token even if every logit is NaN
  for (int id = me; id < vocab; id += kBlockSize) {
    if (row[id] > best[me]) {
      best[me] = row[id];
      best_id[me] = id;
    }
  }
  for (int half = kBlockSize / 2; half > 0; half /= 2) {
    __syncthreads();
    if (me >= half) continue;
    const int other = me + half;
    if (best[other] > best[me] || (best[other] == best[me] && best_id[other] < best_id[me])) {
      best[me] = best[other];
      best_id[me] = best_id[other];
    }
  }
  if (me != 0) return;
  next[sequence] = best_id[0];
  output[size_t(sequence) * output_size + *span.start + span.tokens - prompt] = best_id[0];
}

// Moves the start of the step on, once every reader of the old one is done: the last kernel of a step.
__global__ void advance_positions_kernel(int* start, int tokens) { *start += tokens; }
