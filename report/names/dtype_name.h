// Types of numbers under one name each: `__nv_bfloat16`, `c10::BFloat16` and the `bf16` of a cuBLAS name are `bfloat16`.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace lamina {

enum class DtypeKind { kNone, kIndex, kValue };  // int and its like are mostly types of indices

struct Dtype {
  std::string name;
  DtypeKind kind = DtypeKind::kNone;
};

// Of a type as C++ writes it; pointers and references to it too.
Dtype dtype_of(std::string_view type);

// Of a token of a library's kernel name, in which several may stand together: `bf16f32`, `MxE2m1MxE4m3`. Empty when it is
// anything else.
std::vector<std::string> dtypes_in_token(std::string_view token);

}  // namespace lamina
