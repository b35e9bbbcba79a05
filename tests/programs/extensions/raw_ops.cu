// raw_ops: a paged key and value cache with vLLM's layouts, names and signatures of 2024. The kernels are small, but
// right: check_ops.py compares them with PyTorch. Sums are kept in fp32 and taken in a fixed order, so that two runs
// give the same bits.
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

#include <algorithm>

#include "raw_ops.h"

namespace vllm {

constexpr int kWarpSize = 32;

// vLLM's template parameter; caches of fp8 are left out here.
enum class Fp8KVCacheDataType { kAuto = 0 };

// 16 bytes of a key lie together: the innermost dimension of a key cache.
template <typename cache_t>
constexpr int kPacked = 16 / sizeof(cache_t);

// Where dimension `dim` of a key stands in key_cache[block][kv head][head_size / x][block_size][x].
__host__ __device__ inline int64_t key_at(int64_t block, int offset, int head, int dim, int num_heads, int head_size,
                                          int block_size, int x) {
  return (((block * num_heads + head) * (head_size / x) + dim / x) * block_size + offset) * x + dim % x;
}

// And that of a value in value_cache[block][kv head][head_size][block_size].
__host__ __device__ inline int64_t value_at(int64_t block, int offset, int head, int dim, int num_heads, int head_size,
                                            int block_size) {
  return ((block * num_heads + head) * head_size + dim) * block_size + offset;
}

// A block a token.
template <typename scalar_t, typename cache_t, Fp8KVCacheDataType kv_dt>
__global__ void reshape_and_cache_kernel(const scalar_t* __restrict__ key, const scalar_t* __restrict__ value,
                                         cache_t* __restrict__ key_cache, cache_t* __restrict__ value_cache,
                                         const int64_t* __restrict__ slot_mapping, int64_t key_stride,
                                         int64_t value_stride, int num_heads, int head_size, int block_size) {
  const int64_t token = blockIdx.x, slot = slot_mapping[token];
  if (slot < 0) return;  // a token that only pads the batch
  const int64_t block = slot / block_size;
  const int offset = slot % block_size;
  for (int i = threadIdx.x; i < num_heads * head_size; i += blockDim.x) {
    const int head = i / head_size, dim = i % head_size;
    key_cache[key_at(block, offset, head, dim, num_heads, head_size, block_size, kPacked<cache_t>)] =
        key[token * key_stride + i];
    value_cache[value_at(block, offset, head, dim, num_heads, head_size, block_size)] = value[token * value_stride + i];
  }
}

// NeoX pairs dimension i with i + rot_dim / 2, GPT-J pairs 2 * i with 2 * i + 1.
template <typename scalar_t, bool IS_NEOX>
__device__ void rotate(scalar_t* head, const scalar_t* cos_sin, int pair, int pairs) {
  const int a_at = IS_NEOX ? pair : 2 * pair, b_at = IS_NEOX ? pair + pairs : 2 * pair + 1;
  const float cosine = static_cast<float>(cos_sin[pair]), sine = static_cast<float>(cos_sin[pairs + pair]);
  const float a = static_cast<float>(head[a_at]), b = static_cast<float>(head[b_at]);
  head[a_at] = static_cast<scalar_t>(a * cosine - b * sine);
  head[b_at] = static_cast<scalar_t>(b * cosine + a * sine);
}

// A block a token.
template <typename scalar_t, bool IS_NEOX>
__global__ void rotary_embedding_kernel(const int64_t* __restrict__ positions, scalar_t* __restrict__ query,
                                        scalar_t* __restrict__ key, const scalar_t* __restrict__ cos_sin_cache,
                                        int rot_dim, int64_t query_stride, int64_t key_stride, int num_heads,
                                        int num_kv_heads, int head_size) {
  const int64_t token = blockIdx.x;
  const int pairs = rot_dim / 2;
  const scalar_t* cos_sin = cos_sin_cache + positions[token] * rot_dim;
  for (int i = threadIdx.x; i < num_heads * pairs; i += blockDim.x) {
    rotate<scalar_t, IS_NEOX>(query + token * query_stride + i / pairs * head_size, cos_sin, i % pairs, pairs);
  }
  for (int i = threadIdx.x; i < num_kv_heads * pairs; i += blockDim.x) {
    rotate<scalar_t, IS_NEOX>(key + token * key_stride + i / pairs * head_size, cos_sin, i % pairs, pairs);
  }
}

__device__ inline float warp_sum(float value) {
  for (int mask = kWarpSize / 2; mask > 0; mask /= 2) value += __shfl_xor_sync(0xffffffffu, value, mask);
  return value;
}

// Turns logits into exp(logit - the highest), for all threads to read, and gives their sum to every thread.
template <int NUM_THREADS>
__device__ float exponentials(float* logits, int count) {
  __shared__ float partial[NUM_THREADS];
  float highest = -INFINITY, sum = 0.0f;
  for (int i = 0; i < count; ++i) highest = fmaxf(highest, logits[i]);
  __syncthreads();  // before any thread changes what others still read
  for (int i = threadIdx.x; i < count; i += NUM_THREADS) {
    logits[i] = expf(logits[i] - highest);
    sum += logits[i];
  }
  partial[threadIdx.x] = sum;
  __syncthreads();
  sum = 0.0f;
  for (int i = 0; i < NUM_THREADS; ++i) sum += partial[i];
  return sum;
}

// A block for each head of each sequence: a warp a key for the logits, then a thread a dimension for the values.
template <typename scalar_t, typename cache_t, int HEAD_SIZE, int BLOCK_SIZE, int NUM_THREADS>
__global__ void paged_attention_v1_kernel(scalar_t* __restrict__ out, const scalar_t* __restrict__ query,
                                          const cache_t* __restrict__ key_cache,
                                          const cache_t* __restrict__ value_cache, int num_kv_heads, float scale,
                                          const int* __restrict__ block_tables, const int* __restrict__ seq_lens,
                                          int max_blocks_per_seq, int64_t query_stride) {
  extern __shared__ float logits[];  // one for each key
  const int head = blockIdx.x, sequence = blockIdx.y, num_heads = gridDim.x;
  const int kv_head = head / (num_heads / num_kv_heads), seq_len = seq_lens[sequence];
  const int* blocks = block_tables + int64_t(sequence) * max_blocks_per_seq;
  const scalar_t* q = query + sequence * query_stride + head * HEAD_SIZE;
  const int warp = threadIdx.x / kWarpSize, lane = threadIdx.x % kWarpSize;

  for (int at = warp; at < seq_len; at += NUM_THREADS / kWarpSize) {
    float logit = 0.0f;
    for (int dim = lane; dim < HEAD_SIZE; dim += kWarpSize) {
      const int64_t from = key_at(blocks[at / BLOCK_SIZE], at % BLOCK_SIZE, kv_head, dim, num_kv_heads, HEAD_SIZE,
                                  BLOCK_SIZE, kPacked<cache_t>);
      logit += static_cast<float>(q[dim]) * static_cast<float>(key_cache[from]);
    }
    logit = warp_sum(logit);
    if (lane == 0) logits[at] = logit * scale;
  }
  __syncthreads();
  const float sum = exponentials<NUM_THREADS>(logits, seq_len);

  for (int dim = threadIdx.x; dim < HEAD_SIZE; dim += NUM_THREADS) {
    float total = 0.0f;
    for (int at = 0; at < seq_len; ++at) {
      total += logits[at] * static_cast<float>(value_cache[value_at(blocks[at / BLOCK_SIZE], at % BLOCK_SIZE, kv_head,
                                                                    dim, num_kv_heads, HEAD_SIZE, BLOCK_SIZE)]);
    }
    // A sequence without keys gives zeros, not NaN.
    out[(int64_t(sequence) * num_heads + head) * HEAD_SIZE + dim] = static_cast<scalar_t>(total / (sum + 1e-6f));
  }
}

}  // namespace vllm

namespace {

// Calls `op` with a value of the C++ type of a tensor's elements.
template <typename Op>
void dispatch(const at::Tensor& tensor, Op op) {
  switch (tensor.scalar_type()) {
    case at::ScalarType::Float:
      return op(float());
    case at::ScalarType::Half:
      return op(c10::Half());
    case at::ScalarType::BFloat16:
      return op(c10::BFloat16());
    default:
      TORCH_CHECK(false, "raw_ops: float, half and bfloat16 only, not ", tensor.scalar_type());
  }
}

template <typename T>
T* pointer(const at::Tensor& tensor) {
  return static_cast<T*>(tensor.data_ptr());
}

// What the kernels take for granted of an input beside the type: a mistake would write to memory that is not its own.
void check(const char* op, const at::Tensor& tensor, at::ScalarType type) {
  TORCH_CHECK(tensor.is_cuda(), op, ": a tensor is not on a GPU");
  TORCH_CHECK(tensor.scalar_type() == type, op, ": a tensor has type ", tensor.scalar_type(), ", not ", type);
  TORCH_CHECK(tensor.stride(-1) == 1, op, ": a tensor is not dense in its last dimension");
}

// 32 threads to a warp; no more of them than there is work for.
int threads_for(int64_t work) { return static_cast<int>(std::min<int64_t>((work + 31) / 32 * 32, 512)); }

template <typename scalar_t>
struct Attention {
  const at::Tensor &out, &query, &key_cache, &value_cache, &block_tables, &seq_lens;
  int num_kv_heads;
  float scale;
  int64_t max_seq_len;

  template <int HEAD_SIZE, int BLOCK_SIZE>
  void launch() const {
    constexpr int kThreads = 128;
    const dim3 grid(query.size(1), query.size(0));
    const size_t shared = max_seq_len * sizeof(float);
    vllm::paged_attention_v1_kernel<scalar_t, scalar_t, HEAD_SIZE, BLOCK_SIZE, kThreads>
        <<<grid, kThreads, shared, c10::cuda::getCurrentCUDAStream()>>>(
            pointer<scalar_t>(out), pointer<scalar_t>(query), pointer<scalar_t>(key_cache),
            pointer<scalar_t>(value_cache), num_kv_heads, scale, pointer<int>(block_tables), pointer<int>(seq_lens),
            static_cast<int>(block_tables.size(1)), query.stride(0));
    C10_CUDA_KERNEL_LAUNCH_CHECK();
  }

  template <int HEAD_SIZE>
  void launch_head_size(int64_t block_size) const {
    TORCH_CHECK(block_size == 16 || block_size == 32, "paged_attention_v1: block size ", block_size);
    block_size == 16 ? launch<HEAD_SIZE, 16>() : launch<HEAD_SIZE, 32>();
  }
};

}  // namespace

// key, value [tokens, kv heads, head_size] -> key_cache [blocks, kv heads, head_size / x, block_size, x] and
// value_cache [blocks, kv heads, head_size, block_size], where x elements are 16 bytes; slot_mapping [tokens], int64.
void reshape_and_cache(at::Tensor& key, at::Tensor& value, at::Tensor& key_cache, at::Tensor& value_cache,
                       at::Tensor& slot_mapping, const std::string& kv_cache_dtype, double /*k_scale: of fp8 alone*/) {
  TORCH_CHECK(kv_cache_dtype == "auto", "reshape_and_cache: cache of type ", kv_cache_dtype);
  for (const at::Tensor* tensor : {&key, &value, &key_cache, &value_cache}) {
    check("reshape_and_cache", *tensor, key.scalar_type());
  }
  check("reshape_and_cache", slot_mapping, at::ScalarType::Long);
  const int heads = key.size(1), head_size = key.size(2), block_size = key_cache.size(3);
  const c10::cuda::CUDAGuard device_guard(key.device());
  dispatch(key, [&](auto zero) {
    using scalar_t = decltype(zero);
    TORCH_CHECK(key_cache.size(4) == vllm::kPacked<scalar_t>, "reshape_and_cache: shape of the key cache");
    vllm::reshape_and_cache_kernel<scalar_t, scalar_t, vllm::Fp8KVCacheDataType::kAuto>
        <<<key.size(0), threads_for(heads * head_size), 0, c10::cuda::getCurrentCUDAStream()>>>(
            pointer<scalar_t>(key), pointer<scalar_t>(value), pointer<scalar_t>(key_cache),
            pointer<scalar_t>(value_cache), pointer<int64_t>(slot_mapping), key.stride(0), value.stride(0), heads,
            head_size, block_size);
    C10_CUDA_KERNEL_LAUNCH_CHECK();
  });
}

// positions [tokens], int64; query [tokens, heads * head_size] and key [tokens, kv heads * head_size] are changed in
// place; cos_sin_cache [positions, rot_dim]: first all cosines, then all sines.
void rotary_embedding(at::Tensor& positions, at::Tensor& query, at::Tensor& key, int64_t head_size,
                      at::Tensor& cos_sin_cache, bool is_neox) {
  for (const at::Tensor* tensor : {&query, &key, &cos_sin_cache}) {
    check("rotary_embedding", *tensor, query.scalar_type());
  }
  check("rotary_embedding", positions, at::ScalarType::Long);
  const int rot_dim = cos_sin_cache.size(1), heads = query.size(1) / head_size, kv_heads = key.size(1) / head_size;
  const c10::cuda::CUDAGuard device_guard(query.device());
  dispatch(query, [&](auto zero) {
    using scalar_t = decltype(zero);
    const auto kernel =
        is_neox ? vllm::rotary_embedding_kernel<scalar_t, true> : vllm::rotary_embedding_kernel<scalar_t, false>;
    kernel<<<query.size(0), threads_for(heads * rot_dim / 2), 0, c10::cuda::getCurrentCUDAStream()>>>(
        pointer<int64_t>(positions), pointer<scalar_t>(query), pointer<scalar_t>(key), pointer<scalar_t>(cos_sin_cache),
        rot_dim, query.stride(0), key.stride(0), heads, kv_heads, static_cast<int>(head_size));
    C10_CUDA_KERNEL_LAUNCH_CHECK();
  });
}

// out, query [sequences, heads, head_size]; the caches as above; block_tables [sequences, blocks] and seq_lens
// [sequences], int32. max_seq_len bounds every length, also those that a replayed graph will read.
void paged_attention_v1(at::Tensor& out, at::Tensor& query, at::Tensor& key_cache, at::Tensor& value_cache,
                        int64_t num_kv_heads, double scale, at::Tensor& block_tables, at::Tensor& seq_lens,
                        int64_t block_size, int64_t max_seq_len) {
  constexpr int64_t kMostKeys = 11 * 1024;  // a logit each, in the 48 KB of shared memory that every kernel may take
  constexpr char kOp[] = "paged_attention_v1";
  for (const at::Tensor* tensor : {&out, &query, &key_cache, &value_cache}) check(kOp, *tensor, query.scalar_type());
  for (const at::Tensor* tensor : {&block_tables, &seq_lens}) check(kOp, *tensor, at::ScalarType::Int);
  TORCH_CHECK(out.is_contiguous(), "paged_attention_v1: out is not contiguous");
  TORCH_CHECK(max_seq_len <= std::min(kMostKeys, block_tables.size(1) * block_size), "paged_attention_v1: too long");
  const int64_t head_size = query.size(2);
  TORCH_CHECK(head_size == 64 || head_size == 128, "paged_attention_v1: head size ", head_size);
  const c10::cuda::CUDAGuard device_guard(query.device());
  dispatch(query, [&](auto zero) {
    const Attention<decltype(zero)> attention{out,
                                              query,
                                              key_cache,
                                              value_cache,
                                              block_tables,
                                              seq_lens,
                                              static_cast<int>(num_kv_heads),
                                              static_cast<float>(scale),
                                              max_seq_len};
    head_size == 64 ? attention.template launch_head_size<64>(block_size)
                    : attention.template launch_head_size<128>(block_size);
  });
}
