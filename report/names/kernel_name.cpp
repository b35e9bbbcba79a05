#include "report/names/kernel_name.h"

#include <algorithm>
#include <vector>

#include "report/names/cutlass_name.h"
#include "report/names/demangled.h"
#include "report/names/described_name.h"
#include "report/names/dtype_name.h"
#include "report/names/plain_kernel_name.h"
#include "report/names/torch_operation.h"

namespace lamina {
namespace {

using Parts = std::vector<NamePart>;
using Arguments = std::vector<std::string_view>;

// The function or class itself: the last part that has a name.
size_t main_part(const Parts& parts) {
  size_t last = parts.size() - 1;
  while (last > 0 && (is_lambda(parts[last]) || parts[last].name == "kernel")) --last;
  return last;
}

// Up to two types of values, or the first type of indices.
void add_dtypes(DescribedName& name, const Arguments& arguments) {
  constexpr size_t kMaxTypes = 2;
  std::vector<std::string> values;
  std::string index;
  for (std::string_view argument : arguments) {
    Dtype dtype = dtype_of(argument);
    bool is_new = std::ranges::find(values, dtype.name) == values.end();
    if (dtype.kind == DtypeKind::kValue && is_new && values.size() < kMaxTypes) values.push_back(dtype.name);
    if (dtype.kind == DtypeKind::kIndex && index.empty()) index = dtype.name;
  }
  for (const std::string& value : values) name.add(value);
  if (values.empty()) name.add(index);
}

// ---- PyTorch

// `vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, …>`
bool add_operation(DescribedName& name, const Arguments& arguments) {
  for (std::string_view argument : arguments) {
    if (number_of(argument) >= 0 || dtype_of(argument).kind != DtypeKind::kNone) continue;
    auto operation = operation_of(argument);
    if (!operation) continue;
    name.add(operation->name);
    name.add(operation->dtype);
    if (operation->dtype.empty()) add_dtypes(name, arguments);
    return true;
  }
  return false;
}

bool is_elementwise(std::string_view function) {
  for (std::string_view word : {"elementwise", "reduce_kernel", "multi_tensor_apply"}) {
    if (function.find(word) != std::string_view::npos) return true;
  }
  return false;
}

// ---- FlashAttention

// `Flash_fwd_kernel_traits<128, 64, 128, 4, false, false, cutlass::bfloat16_t, …>`: head size, tile.
bool add_flash_traits(DescribedName& name, const Arguments& arguments) {
  for (std::string_view argument : arguments) {
    Parts parts = name_parts(argument);
    if (parts.empty() || !parts.back().name.starts_with("Flash_")) continue;
    Arguments traits = split_arguments(parts.back().arguments);
    if (traits.size() < 3 || number_of(traits[0]) < 0) continue;
    name.add(first_dtype(argument));
    name.add("head " + std::to_string(number_of(traits[0])));
    name.add(tile_text({number_of(traits[1]), number_of(traits[2])}));
    return true;
  }
  return false;
}

// ---- any template

// `&vllm::silu_kernel<c10::BFloat16>`, or with its whole type: `&(c10::BFloat16 vllm::silu_kernel<…>(c10::BFloat16 const&))`.
void add_functions(DescribedName& name, const Arguments& arguments) {
  for (std::string_view argument : arguments) {
    if (!argument.starts_with('&')) continue;
    argument.remove_prefix(1);
    if (argument.starts_with('(') && argument.ends_with(')')) argument = argument.substr(1, argument.size() - 2);
    if (Parts parts = name_parts(argument); !parts.empty()) return name.add(std::string(without_kernel(parts[main_part(parts)].name)));
  }
}

// Numbers tell something only where they are all there is: `attention_kernel<128>`.
void add_numbers(DescribedName& name, const Arguments& arguments) {
  constexpr size_t kMaxNumbers = 3;
  if (!name.details.empty() || arguments.size() > kMaxNumbers) return;
  if (std::ranges::any_of(arguments, [](std::string_view argument) { return number_of(argument) < 0; })) return;
  for (std::string_view argument : arguments) name.details.push_back(std::to_string(number_of(argument)));
}

// The library, where the namespace says it and the name does not.
std::string library_of(const Parts& parts, size_t main) {
  constexpr std::string_view kNone[] = {"at", "c10", "std", "internal", "flash", "cutlass", "cudnn"};
  std::string_view first = parts[0].name;
  if (main == 0 || std::ranges::find(kNone, first) != std::end(kNone) || parts[main].name.starts_with(first)) return "";
  return std::string(first) + "::";
}

bool is_cutlass_launcher(const Parts& parts) {
  std::string_view last = parts.back().name;
  return parts.size() > 1 && parts[0].name.starts_with("cutlass") && (last == "device_kernel" || last.starts_with("Kernel")) &&
         !parts.back().arguments.empty();
}

std::string template_name(const Parts& parts) {
  size_t main = main_part(parts);
  DescribedName name{library_of(parts, main) + std::string(without_kernel(parts[main].name))};
  Arguments arguments = split_arguments(parts[main].arguments.empty() ? parts.back().arguments : parts[main].arguments);
  if (is_elementwise(parts[main].name) && add_operation(name, arguments)) return name.text();
  if (add_flash_traits(name, arguments)) return name.text();
  add_functions(name, arguments);
  add_dtypes(name, arguments);
  add_numbers(name, arguments);
  return name.text();
}

bool is_copy(std::string_view name) { return name.starts_with("Memcpy ") || name.starts_with("Memset "); }

std::string shortened(std::string_view name) {
  Parts parts = name_parts(name);
  if (parts.empty()) return "";
  if (is_cutlass_launcher(parts)) return short_cutlass_name(parts.back().arguments);
  if (parts.size() == 1 && parts[0].arguments.empty()) {
    if (std::string plain = short_plain_name(parts[0].name); !plain.empty()) return plain;
  }
  return template_name(parts);
}

}  // namespace

std::string short_kernel_name(std::string_view name) {
  std::string result = is_copy(name) ? "" : shortened(name);
  return result.empty() ? std::string(name) : result;
}

}  // namespace lamina
