#include "views.h"

#include <unordered_set>

namespace lamina {

bool is_view(std::string_view name) {
  static const auto* names = new std::unordered_set<std::string_view>{
      "_conj", "_neg_view", "_reshape_alias", "_unsafe_view", "alias", "as_strided", "as_strided_", "chunk", "conj", "detach",
      "detach_", "diagonal", "empty", "empty_like", "empty_strided", "expand", "expand_as", "imag", "lift_fresh", "mH", "mT",
      "matrix_H", "moveaxis", "movedim", "narrow", "new_empty", "new_empty_strided", "numpy_T", "permute", "real",
      "resolve_conj", "resolve_neg", "result_type", "select", "slice", "split", "split_with_sizes", "squeeze", "squeeze_",
      "swapaxes", "swapdims", "t", "t_", "tensor_split", "transpose", "transpose_", "unbind", "unflatten", "unfold",
      "unsafe_chunk", "unsafe_split", "unsafe_split_with_sizes", "unsqueeze", "unsqueeze_", "view", "view_as",
      "view_as_complex", "view_as_real"};
  constexpr std::string_view kNamespace = "aten::";
  if (name == "detach" || name == "detach_") return true;  // told a second time, without it
  return name.starts_with(kNamespace) && names->contains(name.substr(kNamespace.size()));
}

}  // namespace lamina
