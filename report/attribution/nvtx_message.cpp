#include "report/attribution/nvtx_message.h"

#include <algorithm>
#include <cctype>
#include <charconv>

#include "report/attribution/module_path.h"
#include "report/attribution/native_frames.h"
#include "report/attribution/python_literal.h"

namespace lamina {
namespace {

using Kind = NvtxMessage::Kind;

constexpr std::string_view kHookDomain = "lamina";
constexpr std::string_view kAt = " @ ";
constexpr std::string_view kIn = " in=[";
constexpr std::string_view kUnnamed = "(unnamed)";
constexpr std::string_view kLeftOutRow = "(ignored)";

// ---- text

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_identifier(unsigned char c) { return std::isalnum(c) || c == '_' || c == ':' || c == '.'; }

bool all_of(std::string_view text, bool (*is)(unsigned char)) {
  return !text.empty() && std::all_of(text.begin(), text.end(), is);
}

std::optional<uint64_t> number_at(std::string_view text, size_t at) {
  uint64_t value = 0;
  auto result = std::from_chars(text.data() + at, text.data() + text.size(), value);
  return result.ec == std::errc() ? std::optional(value) : std::nullopt;
}

std::optional<uint64_t> number_after(std::string_view text, std::string_view label) {
  size_t at = text.find(label);
  return at == std::string_view::npos ? std::nullopt : number_at(text, at + label.size());
}

std::optional<uint64_t> number_before(std::string_view text, std::string_view label) {
  size_t at = text.find(label);
  if (at == std::string_view::npos) return std::nullopt;
  size_t begin = at;
  while (begin > 0 && is_digit(text[begin - 1])) --begin;
  return begin == at ? std::nullopt : number_at(text, begin);
}

std::optional<uint64_t> sum(std::optional<uint64_t> a, std::optional<uint64_t> b) {
  return a && b ? std::optional(*a + *b) : std::nullopt;
}

// ---- messages

NvtxMessage of_kind(Kind kind, std::string_view name = {}) {
  NvtxMessage message;
  message.kind = kind;
  message.name = message.label = name;
  return message;
}

NvtxMessage layer(std::string_view name) { return of_kind(Kind::kLayer, name.empty() ? kUnnamed : name); }

NvtxMessage module(std::string_view label, std::string_view parameters) {
  NvtxMessage message = layer(label);
  if (!parameters.empty()) message.name += "(" + std::string(parameters) + ")";
  return message;
}

// A step that the recorder did not take for a phase is a layer: without its numbers, which change.
NvtxMessage step(std::string_view name, std::optional<uint64_t> sequences) {
  NvtxMessage message = layer(name);
  message.sequences = sequences;
  return message;
}

std::string_view without_aten(std::string_view op) { return op.starts_with("aten::") ? op.substr(6) : op; }

NvtxMessage op(std::string_view name, std::string_view arguments) {
  NvtxMessage message = of_kind(Kind::kOp, without_aten(name));
  message.name += arguments;
  return message;
}

// ---- noise

bool is_noise(std::string_view text, std::string_view domain) { return domain == "NCCL" || text.starts_with("[DG]"); }

NvtxMessage parse_noise(std::string_view) { return of_kind(Kind::kIgnored); }

// ---- Lamina's hook: `Linear(weight=bfloat16[6144, 4096]) @ LlamaForCausalLM.model.layers.0.self_attn.qkv_proj`

// An op's argument may hold the sign too, but then a quote closes behind it.
bool is_hook_module(std::string_view text, std::string_view domain) {
  size_t at = text.rfind(kAt);
  return domain == kHookDomain && at != std::string_view::npos && text.find_first_of("'\"", at) == std::string_view::npos;
}

NvtxMessage parse_hook_module(std::string_view text) {
  size_t at = text.rfind(kAt);
  NvtxMessage message = layer(text.substr(0, at));
  message.label = message.name.substr(0, message.name.find('('));
  message.path = text.substr(at + kAt.size());
  return message;
}

// ---- markers of modules: {'Module': 'LlamaForCausalLM.model.layers.0.mlp', 'TrainableParams': {…}, 'Inputs': […]}

constexpr std::string_view kCompiledRegion = "compiled region";
constexpr std::string_view kModuleMarker = "{'Module':";
constexpr std::string_view kCompiledMarker = "{'Module': 'Torch Compiled Module (";

struct Marker {
  std::string_view module;
  std::string parameters;  // weight=[6144, 4096], bias=[6144]
  std::string_view inputs;
  bool behind = false;  // an empty range that tells the outputs of the call before it
};

std::string parameters_text(std::string_view dict) {
  std::string text;
  for_each_python_entry(dict, [&](std::string_view key, std::string_view value) {
    text += text.empty() ? "" : ", ";
    text.append(key).append("=").append(value);
  });
  return text;
}

Marker read_marker(std::string_view text) {
  Marker marker;
  for_each_python_entry(text, [&](std::string_view key, std::string_view value) {
    if (key == "Module") marker.module = python_string(value);
    if (key == "TrainableParams") marker.parameters = parameters_text(value);
    if (key == "Inputs") marker.inputs = python_items(value);
    if (key == "Outputs") marker.behind = true;
  });
  return marker;
}

NvtxMessage marked_module(const Marker& marker, std::string_view label) {
  if (marker.behind) return of_kind(Kind::kIgnored);
  NvtxMessage message = module(label, marker.parameters);
  message.shapes = marker.inputs;
  return message;
}

bool is_module_marker(std::string_view text, std::string_view) { return text.starts_with(kModuleMarker); }

NvtxMessage parse_module_marker(std::string_view text) {
  Marker marker = read_marker(text);
  NvtxMessage message = marked_module(marker, path_leaf(marker.module));
  if (message.kind == Kind::kLayer) message.path = marker.module;
  return message;
}

bool is_compiled_marker(std::string_view text, std::string_view) { return text.starts_with(kCompiledMarker); }

// `Torch Compiled Module (input):LlamaModel`: the region is a call of that class; `(output)` comes behind it.
NvtxMessage parse_compiled_marker(std::string_view text) {
  Marker marker = read_marker(text);
  if (text.substr(kCompiledMarker.size()).starts_with("output")) marker.behind = true;
  size_t colon = marker.module.find(':');
  return marked_module(marker, colon == std::string_view::npos ? marker.module : marker.module.substr(colon + 1));
}

// ---- modules of SGLang's diffusion: `transformer.blocks.0.attn1.to_q in=[[1, 4096, 3072]]`

bool is_diffusion_module(std::string_view text, std::string_view) {
  return text.ends_with(']') && all_of(text.substr(0, text.find(kIn)), is_identifier);
}

NvtxMessage parse_diffusion_module(std::string_view text) {
  size_t in = std::min(text.find(kIn), text.size());
  std::string_view path = text.substr(0, in);
  NvtxMessage message = module(path_leaf(path), {});
  message.path = path;
  message.shapes = python_items(text.substr(std::min(in + kIn.size() - 1, text.size())));
  return message;
}

// ---- steps

// execute_context_4(2048)_generation_0(0), with a word of details between in its longer form.
bool is_vllm_step(std::string_view text, std::string_view) {
  return text.starts_with("execute_") && number_after(text, "context_") && number_after(text, "_generation_");
}

NvtxMessage parse_vllm_step(std::string_view text) {
  return step("execute_context_generation", sum(number_after(text, "context_"), number_after(text, "_generation_")));
}

constexpr std::string_view kForwardStep = "[Executor] _forward_step";

// [Executor] _forward_step 47: 0 ctx reqs, 32 gen reqs
bool is_tensorrt_step(std::string_view text, std::string_view) {
  return text.starts_with(kForwardStep) && number_before(text, " ctx reqs");
}

NvtxMessage parse_tensorrt_step(std::string_view text) {
  return step(kForwardStep, sum(number_before(text, " ctx reqs"), number_before(text, " gen reqs")));
}

constexpr std::string_view kDenoisingStep = "denoising_step";

// denoising_step_3_t999
bool is_denoising_step(std::string_view text, std::string_view) {
  return text.starts_with(kDenoisingStep) && number_after(text, "denoising_step_");
}

NvtxMessage parse_denoising_step(std::string_view) { return step(kDenoisingStep, std::nullopt); }

// b=32 s=1 past=2090 NP4: the past grows from step to step.
bool is_benchmark_step(std::string_view text, std::string_view) {
  return text.starts_with("b=") && number_after(text, "b=") && number_after(text, " s=") && text.find(" past=") != std::string_view::npos;
}

NvtxMessage parse_benchmark_step(std::string_view text) {
  size_t past = std::min(text.find(" past="), text.size());
  size_t behind = std::min(text.find(' ', std::min(past + 1, text.size())), text.size());
  std::string name = std::string(text.substr(0, past)).append(text.substr(behind));
  return step(name, number_after(text, "b="));
}

// ---- TensorRT-LLM's layer_wise_benchmarks

constexpr std::string_view kBenchmarkLayer = "layer_wise_benchmarks layer_idx ";
constexpr std::string_view kBenchmarkIgnore = "layer_wise_benchmarks ignore";
constexpr std::string_view kBenchmarkArguments = "layer_wise_benchmarks args ";

bool is_benchmark_layer(std::string_view text, std::string_view) {
  return text.starts_with(kBenchmarkLayer) && std::ranges::all_of(text.substr(kBenchmarkLayer.size()), is_digit);
}

// It stands for `model.layers[5]`.
NvtxMessage parse_benchmark_layer(std::string_view text) {
  NvtxMessage message = layer("layers." + std::string(text.substr(kBenchmarkLayer.size())));
  message.path = message.name;
  return message;
}

bool is_benchmark_ignore(std::string_view text, std::string_view) { return text == kBenchmarkIgnore; }

NvtxMessage parse_benchmark_ignore(std::string_view) { return of_kind(Kind::kLeftOut, kLeftOutRow); }

bool is_benchmark_arguments(std::string_view text, std::string_view) { return text.starts_with(kBenchmarkArguments); }

NvtxMessage parse_benchmark_arguments(std::string_view text) {
  return of_kind(Kind::kContext, text.substr(kBenchmarkArguments.size()));
}

// ---- ops

constexpr std::string_view kEmitNvtx = "emit_nvtx";

// `aten::mm, op_id = 2089, sizes = [[4, 4096], [4096, 32000]], input_op_ids = [(2087,0)]`: all but name and sizes
// changes at every call.
bool is_emit_nvtx(std::string_view text, std::string_view) {
  std::string_view rest = text.substr(std::min(text.find(", "), text.size()));
  return rest.starts_with(", op_id = ") || rest.starts_with(", seq = ") || rest.starts_with(", sizes = ");
}

NvtxMessage parse_emit_nvtx(std::string_view text) {
  constexpr std::string_view kSizes = "sizes = ";
  std::string_view name = text.substr(0, text.find(", "));
  size_t at = text.find(kSizes, name.size());
  if (at == std::string_view::npos) return op(name, {});
  at += kSizes.size();
  size_t end = python_value_end(text, at);
  std::string_view sizes = end == std::string_view::npos ? std::string_view() : python_items(text.substr(at, end - at));
  return op(name, sizes.empty() ? "" : "(" + std::string(sizes) + ")");
}

// `aten::mm(bfloat16[4, 4096], bfloat16[4096, 6144])`, as Lamina's hook writes it, or a bare `aten::mm`.
bool is_op_call(std::string_view text, std::string_view) {
  std::string_view name = text.substr(0, text.find('('));
  if (name.find("::") == std::string_view::npos || !all_of(name, is_identifier)) return false;
  return name.size() < text.size() ? text.ends_with(')') : name.starts_with("aten::");
}

NvtxMessage parse_op_call(std::string_view text) {
  std::string_view name = text.substr(0, text.find('('));
  return op(name, text.substr(name.size()));
}

// `vllm._C.rotary_embedding(int64[4], int) <- _C.abi3.so`: a call of a function of an extension module, by Lamina's hook.
constexpr std::string_view kFromLibrary = ") <- ";

bool is_extension_call(std::string_view text, std::string_view domain) {
  return domain == kHookDomain && text.find('(') != std::string_view::npos && text.rfind(kFromLibrary) != std::string_view::npos;
}

NvtxMessage parse_extension_call(std::string_view text) {
  size_t arguments = text.find('(');
  size_t library = text.rfind(kFromLibrary) + kFromLibrary.size();
  size_t module = text.substr(0, arguments).rfind('.');
  size_t function = module == std::string_view::npos ? 0 : module + 1;
  std::string name(text.substr(function, library - function));
  return op(name + library_name(text.substr(library)), {});
}

// ---- Dynamo

constexpr std::string_view kRegionScope = "Torch-Compiled Region";

// `Torch-Compiled Region: 0/1`: numbers of the frame and of its compilation, by the order in which the process came to them.
bool is_region_scope(std::string_view text, std::string_view) {
  std::string_view rest = text.substr(std::min(kRegionScope.size(), text.size()));
  return text.starts_with(kRegionScope) && rest.starts_with(": ") && number_after(rest, ": ");
}

NvtxMessage parse_region_scope(std::string_view) { return layer(kRegionScope); }

// ---- the table

constexpr Recogniser kRecognisers[] = {
    {"noise", is_noise, parse_noise},
    {"hook module", is_hook_module, parse_hook_module},
    {kCompiledRegion, is_compiled_marker, parse_compiled_marker},
    {"module marker", is_module_marker, parse_module_marker},
    {"vLLM step", is_vllm_step, parse_vllm_step},
    {"TensorRT-LLM step", is_tensorrt_step, parse_tensorrt_step},
    {"denoising step", is_denoising_step, parse_denoising_step},
    {"benchmark step", is_benchmark_step, parse_benchmark_step},
    {"benchmark layer", is_benchmark_layer, parse_benchmark_layer},
    {"benchmark ignore", is_benchmark_ignore, parse_benchmark_ignore},
    {"benchmark arguments", is_benchmark_arguments, parse_benchmark_arguments},
    {kEmitNvtx, is_emit_nvtx, parse_emit_nvtx},
    {"extension call", is_extension_call, parse_extension_call},
    {"Dynamo's region", is_region_scope, parse_region_scope},
    {"op call", is_op_call, parse_op_call},
    {"diffusion module", is_diffusion_module, parse_diffusion_module},
};

// ---- joins

// A range of emit_nvtx and another of that op, or of the record_function scope that it was made for.
bool is_twin_of_emitted(const NvtxMessage& emitted, const NvtxMessage& other) {
  if (emitted.format != kEmitNvtx) return false;
  bool may_be = other.kind == Kind::kOp ? other.from_hook : other.kind == Kind::kLayer && other.format.empty();
  return may_be && other.label == emitted.label;
}

bool is_twin_of_module(const NvtxMessage& hook, const NvtxMessage& marker) {
  if (hook.kind != Kind::kLayer || marker.kind != Kind::kLayer) return false;
  if (!hook.from_hook || marker.from_hook || hook.path.empty()) return false;
  if (marker.format == kCompiledRegion) return hook.label == marker.label;
  if (marker.path.empty()) return false;
  return same_instance(hook.path, marker.path) || hook.label == marker.path;  // a root may go by its class
}

NvtxMessage with_marker(NvtxMessage hook, const NvtxMessage& marker) {
  if (!marker.path.empty()) hook.path = marker.path;
  hook.shapes = marker.shapes;
  return hook;
}

}  // namespace

std::span<const Recogniser> recognisers() { return kRecognisers; }

NvtxMessage parse_nvtx_message(std::string_view text, std::string_view domain) {
  auto row = std::ranges::find_if(kRecognisers, [&](const Recogniser& r) { return r.matches(text, domain); });
  bool known = row != std::end(kRecognisers);
  NvtxMessage message = known ? row->parse(text) : layer(text);
  if (known) message.format = row->format;
  message.from_hook = domain == kHookDomain;
  return message;
}

std::string call_text(const NvtxMessage& module) {
  return module.shapes.empty() ? "" : module.label + "(" + module.shapes + ")";
}

std::optional<NvtxMessage> joined_module(const NvtxMessage& a, const NvtxMessage& b) {
  if (is_twin_of_module(a, b)) return with_marker(a, b);
  if (is_twin_of_module(b, a)) return with_marker(b, a);
  return std::nullopt;
}

const NvtxMessage* better_twin(const NvtxMessage& a, const NvtxMessage& b) {
  if (is_twin_of_emitted(a, b)) return &b;
  return is_twin_of_emitted(b, a) ? &a : nullptr;
}

}  // namespace lamina
