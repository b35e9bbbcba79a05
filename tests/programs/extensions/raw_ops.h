// The ops of raw_ops. Shapes are in raw_ops.cu, above each op.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>

void reshape_and_cache(at::Tensor& key, at::Tensor& value, at::Tensor& key_cache, at::Tensor& value_cache,
                       at::Tensor& slot_mapping, const std::string& kv_cache_dtype, double k_scale);
void rotary_embedding(at::Tensor& positions, at::Tensor& query, at::Tensor& key, int64_t head_size,
                      at::Tensor& cos_sin_cache, bool is_neox);
void paged_attention_v1(at::Tensor& out, at::Tensor& query, at::Tensor& key_cache, at::Tensor& value_cache,
                        int64_t num_kv_heads, double scale, at::Tensor& block_tables, at::Tensor& seq_lens,
                        int64_t block_size, int64_t max_seq_len);
