// Instance paths of modules: the names from the root down, `LlamaForCausalLM.model.layers.0.self_attn.qkv_proj`.
#pragma once

#include <string_view>

namespace lamina {

// The last name, with the list it is in: `layers.0`, `qkv_proj`.
std::string_view path_leaf(std::string_view path);

// Whether a path of Lamina's hook and one of a program's marker name one module. Both begin with a root, which each
// calls by its own name (`LlamaForCausalLM`, `LlamaForCausalLM#2`, `model`) and which may be a different one: that of
// the marker a part of the hook's model, or the other way round.
bool same_instance(std::string_view hook, std::string_view marker);

}  // namespace lamina
