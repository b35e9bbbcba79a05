// What an NVTX message says to the layer tree: a layer, an op, or nothing. Knows the messages of vLLM, SGLang,
// TensorRT-LLM and PyTorch's emit_nvtx; any other text is the name of a layer.
#pragma once

#include <string>
#include <string_view>

namespace lamina {

struct NvtxMessage {
  enum class Kind {
    kLayer,
    kOp,       // goes into the trace of the kernels below: `mm(bfloat16[4, 4096], …)`
    kIgnored,  // noise of a library, or a marker behind a call that is over
  };
  Kind kind = Kind::kLayer;
  std::string name;
};

// `domain`: name of the NVTX domain, empty for the default one.
NvtxMessage parse_nvtx_message(std::string_view text, std::string_view domain);

}  // namespace lamina
