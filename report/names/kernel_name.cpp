#include "report/names/kernel_name.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "report/names/demangled.h"
#include "report/names/described_name.h"
#include "report/names/dtype_name.h"
#include "report/names/plain_kernel_name.h"

namespace lamina {
namespace {

using Parts = std::vector<NamePart>;
using Arguments = std::vector<std::string_view>;

constexpr int kMaxNesting = 8;  // of what is unwrapped

bool is_lambda(const NamePart& part) { return part.name.starts_with('{') || part.name == "operator()"; }

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

// ---- PyTorch: what is done to each element

struct Operation {
  std::string name;
  std::string dtype;
};

// Templates around the operation, and where it stands in their arguments.
constexpr struct Wrapper {
  std::string_view name;
  size_t argument;
  bool scalar = false;  // one operand is a number
} kWrappers[] = {{"gpu_kernel_impl_nocast", 0}, {"gpu_kernel_impl", 0},     {"ReduceOp", 1},           {"func_wrapper_t", 1},
                 {"BinaryFunctor", 3},          {"AUnaryFunctor", 3, true}, {"BUnaryFunctor", 3, true}};

// `CUDAFunctor_add`, `MulFunctor`, `silu_kernel_impl` → add, mul, silu
std::string operation_name(std::string_view name) {
  constexpr std::string_view kOnSelf = "CUDAFunctorOnSelf_";  // with a number
  if (name.starts_with(kOnSelf)) return operation_name(name.substr(kOnSelf.size())) + "_scalar";
  for (std::string_view prefix : {"CUDAFunctor_", "_cuda_"}) {
    if (name.starts_with(prefix)) name.remove_prefix(prefix.size());
  }
  for (std::string_view ending : {"_kernel_cuda", "_internal_kernel", "_cuda_out", "_and_transform", "_functor", "Functor", "Ops"}) {
    if (name.size() > ending.size() && name.ends_with(ending)) name.remove_suffix(ending.size());
  }
  std::string result;
  auto is_capital = [](char c) { return c >= 'A' && c <= 'Z'; };
  for (char c : without_kernel(name)) {
    if (is_capital(c) && !result.empty() && result.back() != '_') result += '_';
    result += is_capital(c) ? static_cast<char>(c - 'A' + 'a') : c;
  }
  return result;
}

// The first type of values, else of indices.
std::string first_of(const Arguments& types) {
  std::string index;
  for (std::string_view type : types) {
    Dtype dtype = dtype_of(type);
    if (dtype.kind == DtypeKind::kValue) return dtype.name;
    if (index.empty() && dtype.name != "bool") index = dtype.name;
  }
  return index;
}

// The parameters of the innermost lambda: `{lambda(bool, c10::BFloat16)#1}`.
Arguments lambda_parameters(const Parts& parts) {
  constexpr std::string_view kLambda = "{lambda(";
  std::string_view last = parts.back().name;
  if (!last.starts_with(kLambda)) return {};
  last.remove_prefix(kLambda.size());
  return split_arguments(last.substr(0, last.rfind(')')));
}

// What says that it is an operation: a template or a function, and no type.
std::optional<Operation> operation_of(std::string_view functor, int nesting = 0) {
  constexpr std::string_view kNone[] = {"array", "Array", "TrivialOffsetCalculator", "TensorListMetadata"};
  Parts parts = name_parts(functor);
  auto main = std::ranges::find_if(parts, [](const NamePart& part) { return !part.arguments.empty() || !part.parameters.empty(); });
  if (main == parts.end() || is_lambda(*main) || std::ranges::find(kNone, main->name) != std::end(kNone)) return std::nullopt;
  Arguments arguments = split_arguments(main->arguments);
  auto wrapper = std::ranges::find(kWrappers, main->name, &Wrapper::name);
  bool wraps = wrapper != std::end(kWrappers) && wrapper->argument < arguments.size() && nesting < kMaxNesting;
  auto operation = wraps ? operation_of(arguments[wrapper->argument], nesting + 1) : Operation{operation_name(main->name), ""};
  std::string dtype = first_of(arguments.empty() ? lambda_parameters(parts) : arguments);
  if (operation && !dtype.empty()) operation->dtype = dtype;
  if (operation && wraps && wrapper->scalar) operation->name += "_scalar";
  return operation;
}

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

// ---- cutlass and FlashAttention: the tile

// The sides that `tuple<C<128>, C<80>, C<256>>` at the front of `text` has.
std::vector<long> tuple_sides(std::string_view text) {
  std::vector<long> sides;
  Parts tuple = name_parts(text);
  if (tuple.empty()) return sides;
  for (std::string_view side : split_arguments(tuple[0].arguments)) {
    Parts constant = name_parts(side);
    sides.push_back(constant.empty() ? -1 : number_of(constant.back().arguments));
  }
  return sides;
}

std::string tile_text(const std::vector<long>& sides) {
  std::string text;
  for (long side : sides) text += (text.empty() ? "" : "x") + std::to_string(side);
  return text;
}

// The first tuple that is no shape of a cluster or of a stride.
std::string first_tile(std::string_view text) {
  constexpr std::string_view kTuple = "tuple<";
  constexpr long kLargestCluster = 32;
  constexpr long kLargestSide = 4096;
  for (size_t at = text.find(kTuple); at != std::string_view::npos; at = text.find(kTuple, at + 1)) {
    std::vector<long> sides = tuple_sides(text.substr(at, 200));
    if (sides.size() != 3 || std::ranges::any_of(sides, [](long side) { return side < 1 || side > kLargestSide; })) continue;
    if (sides[0] * sides[1] * sides[2] > kLargestCluster) return tile_text(sides);
  }
  return "";
}

// The first type of values anywhere in the text.
std::string first_dtype(std::string_view text) {
  constexpr std::string_view kEnds = "<>, ()";
  while (!text.empty()) {
    size_t end = std::min(text.find_first_of(kEnds), text.size());
    if (Dtype dtype = dtype_of(text.substr(0, end)); dtype.kind == DtypeKind::kValue) return dtype.name;
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return "";
}

constexpr struct Feature {
  std::string_view written;
  std::string_view name;
} kFeatures[] = {{"GroupProblemShape", "grouped"}, {"::ReLu", "relu"}, {"::GELU", "gelu"}, {"::SiLu", "silu"}, {"Bias", "bias"}};

// `cutlass::device_kernel<cutlass::gemm::kernel::GemmUniversal<…>>`, `…<flash::enable_sm90_or_later<flash::FlashAttnFwdSm90<…>>>`
std::string collective_name(std::string_view text) {
  Parts parts = name_parts(text);
  for (int nesting = 0; nesting < kMaxNesting && !parts.empty() && parts.back().name.starts_with("enable_"); ++nesting) {
    text = parts.back().arguments;
    parts = name_parts(text);
  }
  if (parts.empty()) return "";
  if (parts.size() == 1 && parts[0].arguments.empty()) return short_plain_name(text);  // a name from cutlass's own list
  bool of_cutlass = parts[0].name == "cutlass" && parts.size() > 1;
  DescribedName name{(of_cutlass ? "cutlass::" : "") + std::string(without_kernel(parts.back().name))};
  name.add(first_dtype(text));
  name.add(first_tile(text));
  for (const Feature& feature : kFeatures) {
    if (text.find(feature.written) != std::string_view::npos) name.add(std::string(feature.name));
  }
  return name.text();
}

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
  if (is_cutlass_launcher(parts)) return collective_name(parts.back().arguments);
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
