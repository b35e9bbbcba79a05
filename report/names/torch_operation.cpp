#include "report/names/torch_operation.h"

#include <algorithm>
#include <vector>

#include "report/names/demangled.h"
#include "report/names/described_name.h"
#include "report/names/dtype_name.h"

namespace lamina {
namespace {

using Parts = std::vector<NamePart>;
using Arguments = std::vector<std::string_view>;

constexpr int kMaxTypeNesting = 8;  // of what is unwrapped

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
std::optional<Operation> find_operation(std::string_view functor, int nesting) {
  constexpr std::string_view kNone[] = {"array", "Array", "TrivialOffsetCalculator", "TensorListMetadata"};
  Parts parts = name_parts(functor);
  auto main = std::ranges::find_if(parts, [](const NamePart& part) { return !part.arguments.empty() || !part.parameters.empty(); });
  if (main == parts.end() || is_lambda(*main) || std::ranges::find(kNone, main->name) != std::end(kNone)) return std::nullopt;
  Arguments arguments = split_arguments(main->arguments);
  auto wrapper = std::ranges::find(kWrappers, main->name, &Wrapper::name);
  bool wraps = wrapper != std::end(kWrappers) && wrapper->argument < arguments.size() && nesting < kMaxTypeNesting;
  auto operation = wraps ? find_operation(arguments[wrapper->argument], nesting + 1) : Operation{operation_name(main->name), ""};
  std::string dtype = first_of(arguments.empty() ? lambda_parameters(parts) : arguments);
  if (operation && !dtype.empty()) operation->dtype = dtype;
  if (operation && wraps && wrapper->scalar) operation->name += "_scalar";
  return operation;
}

}  // namespace

std::optional<Operation> operation_of(std::string_view argument) { return find_operation(argument, 0); }

}  // namespace lamina
