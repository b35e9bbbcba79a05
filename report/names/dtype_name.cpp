#include "report/names/dtype_name.h"

#include <algorithm>

namespace lamina {
namespace {

struct Spelling {
  std::string_view text;
  std::string_view name;
  DtypeKind kind = DtypeKind::kValue;
};

// Without namespaces.
constexpr Spelling kTypes[] = {{"float", "float"},
                               {"double", "double"},
                               {"__nv_bfloat16", "bfloat16"},
                               {"nv_bfloat16", "bfloat16"},
                               {"BFloat16", "bfloat16"},
                               {"bfloat16_t", "bfloat16"},
                               {"__half", "half"},
                               {"half", "half"},
                               {"Half", "half"},
                               {"half_t", "half"},
                               {"tfloat32_t", "tf32"},
                               {"Float8_e4m3fn", "fp8_e4m3"},
                               {"__nv_fp8_e4m3", "fp8_e4m3"},
                               {"float_e4m3_t", "fp8_e4m3"},
                               {"Float8_e5m2", "fp8_e5m2"},
                               {"__nv_fp8_e5m2", "fp8_e5m2"},
                               {"float_e5m2_t", "fp8_e5m2"},
                               {"__nv_fp4_e2m1", "fp4"},
                               {"float_e2m1_t", "fp4"},
                               {"signed char", "int8"},
                               {"int8_t", "int8"},
                               {"unsigned char", "uint8"},
                               {"uint8_t", "uint8"},
                               {"int", "int", DtypeKind::kIndex},
                               {"long", "long", DtypeKind::kIndex},
                               {"short", "short", DtypeKind::kIndex},
                               {"unsigned int", "unsigned int", DtypeKind::kIndex},
                               {"unsigned long", "unsigned long", DtypeKind::kIndex},
                               {"bool", "bool", DtypeKind::kIndex}};

// Longer ones before what they begin with.
constexpr Spelling kTokens[] = {
    {"bf16", "bfloat16"}, {"tf32", "tf32"},     {"fp16", "half"},         {"f16", "half"},  {"fp32", "float"},   {"f32", "float"},
    {"f64", "double"},    {"e4m3", "fp8_e4m3"}, {"e5m2", "fp8_e5m2"},     {"s8", "int8"},   {"MxE4m3", "mxfp8"}, {"MxE2m1", "mxfp4"},
    {"E4m3", "fp8_e4m3"}, {"E2m1", "fp4"},      {"Bfloat16", "bfloat16"}, {"Fp16", "half"}, {"Fp32", "float"}};

std::string_view without_pointers(std::string_view type) {
  constexpr std::string_view kConst = "const";
  for (;;) {
    if (type.ends_with('*') || type.ends_with('&') || type.ends_with(' '))
      type.remove_suffix(1);
    else if (type.ends_with(kConst))
      type.remove_suffix(kConst.size());
    else
      return type;
  }
}

}  // namespace

Dtype dtype_of(std::string_view type) {
  constexpr std::string_view kOpaque = "OpaqueType<";
  type = without_pointers(type);
  // PyTorch's, where only the size matters: `OpaqueType<2u>`.
  if (size_t opaque = type.find(kOpaque); opaque != std::string_view::npos && type.ends_with('>')) {
    std::string_view size = type.substr(opaque + kOpaque.size());
    return {std::string(size.substr(0, size.find_first_not_of("0123456789"))) + " bytes", DtypeKind::kValue};
  }
  if (size_t scope = type.rfind("::"); scope != std::string_view::npos) type.remove_prefix(scope + 2);
  auto known = std::ranges::find(kTypes, type, &Spelling::text);
  return known != std::end(kTypes) ? Dtype{std::string(known->name), known->kind} : Dtype{};
}

std::vector<std::string> dtypes_in_token(std::string_view token) {
  std::vector<std::string> found;
  while (!token.empty()) {
    auto known = std::ranges::find_if(kTokens, [&](const Spelling& each) { return token.starts_with(each.text); });
    if (known == std::end(kTokens)) return {};
    found.emplace_back(known->name);
    token.remove_prefix(known->text.size());
  }
  return found;
}

}  // namespace lamina
