// What an NVTX message says to the layer tree: a layer, an op, or nothing. One table knows the formats: those of
// Lamina's PyTorch hook, of vLLM, SGLang, TensorRT-LLM and of PyTorch's emit_nvtx; any other text names a layer.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace lamina {

struct NvtxMessage {
  enum class Kind {
    kLayer,
    kOp,       // goes into the trace of the kernels below: `mm(bfloat16[4, 4096], …)`
    kLeftOut,  // what the program does not want counted among its layers: a row outside of them
    kContext,  // values for the report's context; no layer
    kIgnored,  // noise of a library, or a marker behind a call that is over
  };
  Kind kind = Kind::kLayer;
  std::string name;    // of the row; an op's text in a trace; of kContext the JSON
  std::string label;   // the name without parameters and shapes: a class, the last part of a path, an op
  std::string path;    // a module's: the names from the root down to it
  std::string shapes;  // of a module's inputs: `[2048, 4096], [2048]`
  std::optional<uint64_t> sequences;  // how many a step runs
  bool from_hook = false;             // Lamina's own, which know classes and dtypes
  std::string_view format;            // Recogniser::format; empty: none knows the text
};

// A format of messages.
struct Recogniser {
  std::string_view format;
  bool (*matches)(std::string_view text, std::string_view domain);
  NvtxMessage (*parse)(std::string_view text);  // of a text that matches, which may be cut off all the same
};

// The table. The first row that matches counts.
std::span<const Recogniser> recognisers();

// `domain`: name of the NVTX domain, empty for the default one.
NvtxMessage parse_nvtx_message(std::string_view text, std::string_view domain);

// What a module adds to the trace of kernels that it launches outside of every op, where its inputs are known. The form
// is that of an op of emit_nvtx, name and shapes without dtypes: `qkv_proj([2048, 4096])`. It stands alone, as only ops
// inside of the innermost layer belong to a trace.
std::string call_text(const NvtxMessage& module);

// Two ranges of which one directly encloses the other may tell of the same call, each in its way.
//
// The hook and a marker of the program of one module: the hook's class with the marker's path and shapes. Else nothing.
std::optional<NvtxMessage> joined_module(const NvtxMessage& a, const NvtxMessage& b);
// emit_nvtx and the hook of one op, or emit_nvtx and the text of a record_function scope: the one that says more (the
// hook's ops have dtypes). Else null.
const NvtxMessage* better_twin(const NvtxMessage& a, const NvtxMessage& b);

}  // namespace lamina
