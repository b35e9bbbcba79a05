#include "report/names/cutlass_name.h"

#include <algorithm>

#include "report/names/demangled.h"
#include "report/names/described_name.h"
#include "report/names/dtype_name.h"
#include "report/names/plain_kernel_name.h"

namespace lamina {
namespace {

using Parts = std::vector<NamePart>;

constexpr int kMaxNesting = 8;  // of what is unwrapped

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

constexpr struct Feature {
  std::string_view written;
  std::string_view name;
} kFeatures[] = {{"GroupProblemShape", "grouped"}, {"::ReLu", "relu"}, {"::GELU", "gelu"}, {"::SiLu", "silu"}, {"Bias", "bias"}};

}  // namespace

std::string tile_text(const std::vector<long>& sides) {
  std::string text;
  for (long side : sides) text += (text.empty() ? "" : "x") + std::to_string(side);
  return text;
}

std::string first_dtype(std::string_view text) {
  constexpr std::string_view kEnds = "<>, ()";
  while (!text.empty()) {
    size_t end = std::min(text.find_first_of(kEnds), text.size());
    if (Dtype dtype = dtype_of(text.substr(0, end)); dtype.kind == DtypeKind::kValue) return dtype.name;
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return "";
}

// `cutlass::device_kernel<cutlass::gemm::kernel::GemmUniversal<…>>`, `…<flash::enable_sm90_or_later<flash::FlashAttnFwdSm90<…>>>`
std::string short_cutlass_name(std::string_view text) {
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

}  // namespace lamina
