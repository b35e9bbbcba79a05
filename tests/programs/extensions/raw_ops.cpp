// Bindings of raw_ops, as vLLM had them in 2024: the functions are reached through pybind11 alone. PyTorch's dispatcher
// is not asked, so that no observer of PyTorch's ops sees a call; a profiler has to see it in another way.
#include "raw_ops.h"

#include <torch/csrc/utils/pybind.h>  // slow to compile, but it alone turns a torch.Tensor into an at::Tensor

PYBIND11_MODULE(raw_ops, module) {
  module.doc() = "Ops of a paged key and value cache, in the manner of vLLM";
  module.def("reshape_and_cache", &reshape_and_cache, "Write keys and values to their slots of the cache");
  module.def("rotary_embedding", &rotary_embedding, "Rotate queries and keys by their positions, in place");
  module.def("paged_attention_v1", &paged_attention_v1, "Attention of one query a sequence over its cached keys");
}
