// What NVTX messages mean: a row for each message that frameworks and the PyTorch hook are known to emit.
#include "report/attribution/nvtx_message.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "report/attribution/python_literal.h"

namespace lamina {
namespace {

using Kind = NvtxMessage::Kind;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

struct Case {
  std::string_view format;
  std::string_view text;
  Kind kind;
  std::string_view name;
  std::string_view label = {};  // empty: the name
  std::string_view path = {};
  std::string_view shapes = {};
  std::optional<uint64_t> sequences = {};
  std::string_view domain = {};
};

constexpr std::string_view kHook = "lamina";

const Case kCases[] = {
    {.format = "hook module",
     .text = "Linear(weight=bfloat16[6144, 4096]) @ LlamaForCausalLM.model.layers.0.self_attn.qkv_proj",
     .kind = Kind::kLayer,
     .name = "Linear(weight=bfloat16[6144, 4096])",
     .label = "Linear",
     .path = "LlamaForCausalLM.model.layers.0.self_attn.qkv_proj",
     .domain = kHook},
    {.format = "hook module",
     .text = "LlamaForCausalLM @ LlamaForCausalLM#2",
     .kind = Kind::kLayer,
     .name = "LlamaForCausalLM",
     .path = "LlamaForCausalLM#2",
     .domain = kHook},
    {.format = "hook module",
     .text = "Rotary(cos=float32[8, 4]) @ LlamaForCausalLM.model.(Rotary)",
     .kind = Kind::kLayer,
     .name = "Rotary(cos=float32[8, 4])",
     .label = "Rotary",
     .path = "LlamaForCausalLM.model.(Rotary)",
     .domain = kHook},
    {.format = "op call",
     .text = "aten::mm(bfloat16[4, 4096], bfloat16[4096, 6144])",
     .kind = Kind::kOp,
     .name = "mm(bfloat16[4, 4096], bfloat16[4096, 6144])",
     .label = "mm",
     .domain = kHook},
    {.format = "op call",
     .text = "my::op(bfloat16[4], 'a @ b')",
     .kind = Kind::kOp,
     .name = "my::op(bfloat16[4], 'a @ b')",
     .label = "my::op",
     .domain = kHook},
    {.format = "op call",
     .text = "vllm::unified_attention(q)",
     .kind = Kind::kOp,
     .name = "vllm::unified_attention(q)",
     .label = "vllm::unified_attention"},
    {.format = "op call", .text = "aten::relu", .kind = Kind::kOp, .name = "relu"},

    {.format = "module marker",
     .text = "{'Module': 'LlamaForCausalLM.model.layers.0.self_attn.qkv_proj', 'TrainableParams': {'weight': [6144, "
             "4096]}, 'Inputs': [[2048, 4096]]}",
     .kind = Kind::kLayer,
     .name = "qkv_proj(weight=[6144, 4096])",
     .label = "qkv_proj",
     .path = "LlamaForCausalLM.model.layers.0.self_attn.qkv_proj",
     .shapes = "[2048, 4096]"},
    {.format = "module marker",  // SGLang
     .text = "{'Module': 'model.layers.17', 'Inputs': [[2048], [2048, 4096]], 'residual': [[2048, 4096]]}",
     .kind = Kind::kLayer,
     .name = "layers.17",
     .path = "model.layers.17",
     .shapes = "[2048], [2048, 4096]"},
    {.format = "module marker",
     .text = "{'Module': 'm.norm', 'TrainableParams': {'weight': [4096], 'bias': [4096]}, 'StaticParams': {'eps': "
             "1e-05, 'out': None, 'on': True, 'pad': (1, 1), 'mode': \"it's\"}}",
     .kind = Kind::kLayer,
     .name = "norm(weight=[4096], bias=[4096])",
     .label = "norm",
     .path = "m.norm"},
    {.format = "module marker",
     .text = "{'Module': 'model', 'TrainableParams': {}}",
     .kind = Kind::kLayer,
     .name = "model",
     .path = "model"},
    {.format = "module marker",
     .text = "{'Module': 'model.layers.0.mlp', 'Outputs': [[2048, 6144]]}",
     .kind = Kind::kIgnored,
     .name = ""},
    {.format = "module marker",  // a key inside of a value says nothing
     .text = "{'Module': 'm.head', 'StaticParams': {'Outputs': 4, 'Module': 'x'}}",
     .kind = Kind::kLayer,
     .name = "head",
     .path = "m.head"},
    {.format = "compiled region",
     .text = "{'Module': 'Torch Compiled Module (input):LlamaModel', 'TrainableParams': {'scale': [1]}, 'Inputs': [[4]]}",
     .kind = Kind::kLayer,
     .name = "LlamaModel(scale=[1])",
     .label = "LlamaModel",
     .shapes = "[4]"},
    {.format = "compiled region",
     .text = "{'Module': 'Torch Compiled Module (output):LlamaModel'}",
     .kind = Kind::kIgnored,
     .name = ""},
    {.format = "compiled region",
     .text = "{'Module': 'Torch Compiled Module (output):LlamaModel', 'Outputs': [[4, 4096]]}",
     .kind = Kind::kIgnored,
     .name = ""},
    {.format = "diffusion module",
     .text = "transformer.blocks.0.attn1.to_q in=[[1, 4096, 3072]]",
     .kind = Kind::kLayer,
     .name = "to_q",
     .path = "transformer.blocks.0.attn1.to_q",
     .shapes = "[1, 4096, 3072]"},
    {.format = "diffusion module",
     .text = "transformer.blocks.0 in=[]",
     .kind = Kind::kLayer,
     .name = "blocks.0",
     .path = "transformer.blocks.0"},

    {.format = "vLLM step",
     .text = "execute_context_4(2048)_generation_0(0)",
     .kind = Kind::kLayer,
     .name = "execute_context_generation",
     .sequences = 4},
    {.format = "vLLM step",  // as the hook writes it
     .text = "execute_context_1(512)_generation_31(31)",
     .kind = Kind::kLayer,
     .name = "execute_context_generation",
     .sequences = 32,
     .domain = kHook},
    {.format = "vLLM step",
     .text = "execute_2048_context_4(sq2048sk2048sqsq1048576sqsk1048576)_generation_3(sq0sk0sqsq0sqsk0)",
     .kind = Kind::kLayer,
     .name = "execute_context_generation",
     .sequences = 7},
    {.format = "TensorRT-LLM step",
     .text = "[Executor] _forward_step 47: 0 ctx reqs, 32 gen reqs",
     .kind = Kind::kLayer,
     .name = "[Executor] _forward_step",
     .sequences = 32},
    {.format = "TensorRT-LLM step",
     .text = "[Executor] _forward_step: 3 ctx reqs, 0 ctx tokens, 32 gen reqs",
     .kind = Kind::kLayer,
     .name = "[Executor] _forward_step",
     .sequences = 35},
    {.format = "denoising step", .text = "denoising_step_3_t999", .kind = Kind::kLayer, .name = "denoising_step"},
    {.format = "benchmark step",
     .text = "b=32 s=1 past=2090 NP4",
     .kind = Kind::kLayer,
     .name = "b=32 s=1 NP4",
     .sequences = 32},

    {.format = "benchmark layer",
     .text = "layer_wise_benchmarks layer_idx 5",
     .kind = Kind::kLayer,
     .name = "layers.5",
     .path = "layers.5",
     .domain = "NVTX"},
    {.format = "benchmark ignore",
     .text = "layer_wise_benchmarks ignore",
     .kind = Kind::kLeftOut,
     .name = "(ignored)",
     .domain = "NVTX"},
    {.format = "benchmark arguments",
     .text = "layer_wise_benchmarks args {\"batch_size\": 4}",
     .kind = Kind::kContext,
     .name = "{\"batch_size\": 4}",
     .domain = "NVTX"},

    {.format = "emit_nvtx",
     .text = "aten::mm, op_id = 2089, sizes = [[4, 4096], [4096, 32000]], input_op_ids = [(2087,0), (2083,0)]",
     .kind = Kind::kOp,
     .name = "mm([4, 4096], [4096, 32000])",
     .label = "mm"},
    {.format = "emit_nvtx",
     .text = "aten::addmm, seq = 12, sizes = [[1]]",
     .kind = Kind::kOp,
     .name = "addmm([1])",
     .label = "addmm"},
    {.format = "emit_nvtx", .text = "aten::relu, op_id = 3", .kind = Kind::kOp, .name = "relu"},
    {.format = "emit_nvtx",
     .text = "vllm::attention, op_id = 3, sizes = []",
     .kind = Kind::kOp,
     .name = "vllm::attention"},

    {.format = "extension call",
     .text = "vllm._C.rotary_embedding(int64[4], 'a(b) <- c', int) <- _C.abi3.so",
     .kind = Kind::kOp,
     .name = "rotary_embedding(int64[4], 'a(b) <- c', int) <- _C.so",
     .domain = kHook},
    {.format = "extension call",
     .text = "f() <- raw_ops.cpython-312-x86_64-linux-gnu.so",
     .kind = Kind::kOp,
     .name = "f() <- raw_ops.so",
     .domain = kHook},

    {.format = "Dynamo's region", .text = "Torch-Compiled Region: 0/1", .kind = Kind::kLayer, .name = "Torch-Compiled Region"},

    {.format = "noise", .text = "ncclAllReduce", .kind = Kind::kIgnored, .name = "", .domain = "NCCL"},
    {.format = "noise", .text = "[DG] gemm", .kind = Kind::kIgnored, .name = ""},

    {.format = "", .text = "ncclAllReduce", .kind = Kind::kLayer, .name = "ncclAllReduce", .domain = "mine"},
    {.format = "", .text = "a, b", .kind = Kind::kLayer, .name = "a, b"},
    {.format = "", .text = "forward(x)", .kind = Kind::kLayer, .name = "forward(x)"},
    {.format = "", .text = "run (aten::mm)", .kind = Kind::kLayer, .name = "run (aten::mm)"},
    {.format = "", .text = "A @ b", .kind = Kind::kLayer, .name = "A @ b"},
    {.format = "", .text = "a b in=[[1]]", .kind = Kind::kLayer, .name = "a b in=[[1]]"},
    {.format = "", .text = "denoising_step_", .kind = Kind::kLayer, .name = "denoising_step_"},
    {.format = "", .text = "Torch-Compiled Region", .kind = Kind::kLayer, .name = "Torch-Compiled Region"},
    {.format = "", .text = "execute_model", .kind = Kind::kLayer, .name = "execute_model"},
    {.format = "", .text = "[Executor] _forward_step 47", .kind = Kind::kLayer, .name = "[Executor] _forward_step 47"},
    {.format = "", .text = "layer_wise_benchmarks", .kind = Kind::kLayer, .name = "layer_wise_benchmarks"},
    {.format = "", .text = "", .kind = Kind::kLayer, .name = "(unnamed)"},
};

TEST(NvtxMessages, MeanWhatTheTableSays) {
  for (const Case& expected : kCases) {
    NvtxMessage message = parse_nvtx_message(expected.text, expected.domain);
    EXPECT_EQ(message.format, expected.format) << expected.text;
    EXPECT_EQ(message.kind, expected.kind) << expected.text;
    EXPECT_EQ(message.name, expected.name) << expected.text;
    std::string_view label = expected.label.empty() ? expected.name : expected.label;
    EXPECT_EQ(message.label, label) << expected.text;
    EXPECT_EQ(message.path, expected.path) << expected.text;
    EXPECT_EQ(message.shapes, expected.shapes) << expected.text;
    EXPECT_EQ(message.sequences, expected.sequences) << expected.text;
    EXPECT_EQ(message.from_hook, expected.domain == kHook) << expected.text;
  }
}

TEST(NvtxMessages, EveryFormatHasACase) {
  for (const Recogniser& recogniser : recognisers()) {
    bool tested = std::ranges::any_of(kCases, [&](const Case& c) { return c.format == recogniser.format; });
    EXPECT_TRUE(tested) << recogniser.format;
  }
}

// The recorder cuts long texts, and nothing says that a program's are whole. Each is tried in a buffer of its own, so
// that a sanitizer sees a read behind its end.
TEST(NvtxMessages, CutTextsAreReadAsFarAsTheyGo) {
  for (const Case& whole : kCases) {
    NvtxMessage other = parse_nvtx_message(whole.text, whole.domain);
    for (size_t size = 0; size < whole.text.size(); ++size) {
      std::vector<char> text(whole.text.begin(), whole.text.begin() + static_cast<long>(size));
      std::string_view cut(text.data(), text.size());
      NvtxMessage message = parse_nvtx_message(cut, whole.domain);
      bool has_row = message.kind == Kind::kLayer || message.kind == Kind::kLeftOut;
      EXPECT_TRUE(!has_row || !message.name.empty()) << cut;
      joined_module(message, other);
      better_twin(message, other);
      for (const Recogniser& recogniser : recognisers()) {
        if (recogniser.matches(cut, whole.domain)) recogniser.parse(cut);
      }
    }
  }
}

TEST(NvtxMessages, BrokenModuleMarkerHasAName) {
  for (const char* text : {"{'Module':", "{'Module': '", "{'Module': ''}", "{'Module': [", "{'Module':    ",
                           "{'Module': 'Torch Compiled Module (input):"}) {
    EXPECT_EQ(parse_nvtx_message(text, {}).name, "(unnamed)") << text;
  }
  EXPECT_EQ(parse_nvtx_message("{'Module': 'm', 'TrainableParams': {'weight': [", {}).name, "m");
}

TEST(NvtxMessages, NumbersThatChangeAreNotPartOfAName) {
  const char* pairs[][2] = {
      {"aten::mm, op_id = 2089, sizes = [[4]], input_op_ids = [(2087,0)]", "aten::mm, op_id = 1, sizes = [[4]]"},
      {"aten::mm, seq = 1, op_id = 2, sizes = [[4]]", "aten::mm, seq = 9, op_id = 3, sizes = [[4]]"},
      {"denoising_step_3_t999", "denoising_step_14_t0"},
      {"Torch-Compiled Region: 0/0", "Torch-Compiled Region: 12/3_1"},
      {"b=32 s=1 past=2090 NP4", "b=32 s=1 past=2091 NP4"},
      {"execute_context_0(0)_generation_32(32)", "execute_context_4(2048)_generation_0(0)"},
      {"[Executor] _forward_step 47: 0 ctx reqs, 32 gen reqs", "[Executor] _forward_step 48: 1 ctx reqs, 32 gen reqs"},
  };
  for (auto [a, b] : pairs) EXPECT_EQ(parse_nvtx_message(a, {}).name, parse_nvtx_message(b, {}).name) << a;
}

TEST(NvtxMessages, NumberOfSequencesThatIsTooLargeIsNotKnown) {
  EXPECT_FALSE(parse_nvtx_message("b=99999999999999999999999 s=1 past=2", {}).sequences);
}

TEST(NvtxMessages, CallTextIsThatOfAnOp) {
  auto text = [](std::string_view marker) { return call_text(parse_nvtx_message(marker, {})); };
  EXPECT_EQ(text("{'Module': 'm.proj', 'TrainableParams': {'weight': [8, 4]}, 'Inputs': [[2, 4], [2]]}"),
            "proj([2, 4], [2])");
  EXPECT_EQ(text("{'Module': 'm.proj', 'Inputs': []}"), "");
  EXPECT_EQ(text("{'Module': 'm.proj'}"), "");
}

// ---- twins

constexpr std::string_view kMarker = "{'Module': 'LlamaForCausalLM.model.layers.0.mlp', 'Inputs': [[2, 4]]}";

NvtxMessage hook(std::string_view text) { return parse_nvtx_message(text, kHook); }
NvtxMessage plain(std::string_view text) { return parse_nvtx_message(text, {}); }

TEST(Twins, HooksClassGoesWithTheMarkersPathAndShapes) {
  NvtxMessage ours = hook("MLP(w=bfloat16[4]) @ LlamaForCausalLM#2.model.layers.0.mlp");
  NvtxMessage theirs = plain(kMarker);
  for (auto joined : {joined_module(ours, theirs), joined_module(theirs, ours)}) {
    ASSERT_TRUE(joined);
    EXPECT_EQ(joined->name, "MLP(w=bfloat16[4])");
    EXPECT_EQ(joined->path, "LlamaForCausalLM.model.layers.0.mlp");
    EXPECT_EQ(call_text(*joined), "MLP([2, 4])");
  }
}

TEST(Twins, CompiledRegionIsToldByItsClass) {
  NvtxMessage region = plain("{'Module': 'Torch Compiled Module (input):LlamaModel', 'Inputs': [[4]]}");
  auto joined = joined_module(hook("LlamaModel @ LlamaForCausalLM.model"), region);
  ASSERT_TRUE(joined);
  EXPECT_EQ(joined->path, "LlamaForCausalLM.model");
  EXPECT_FALSE(joined_module(hook("LlamaMLP @ LlamaForCausalLM.model"), region));
}

TEST(Twins, RootOfAMarkerMayBeAClass) {
  EXPECT_TRUE(joined_module(hook("LlamaForCausalLM @ Pipeline.llm"), plain("{'Module': 'LlamaForCausalLM'}")));
  EXPECT_FALSE(joined_module(hook("Llama @ Pipeline.llm"), plain("{'Module': 'LlamaForCausalLM'}")));
}

TEST(Twins, OtherLayersAreNotModules) {
  NvtxMessage ours = hook("MLP @ LlamaForCausalLM.model.layers.0.mlp");
  for (const NvtxMessage& other : {ours, plain("mlp"), plain("MLP"), plain("denoising_step_3_t999"), hook("mlp"),
                                   plain("{'Module': 'LlamaForCausalLM.model.layers.1.mlp'}")}) {
    EXPECT_FALSE(joined_module(ours, other)) << other.name;
    EXPECT_FALSE(joined_module(other, ours)) << other.name;
  }
  EXPECT_FALSE(joined_module(plain(kMarker), plain(kMarker)));
}

TEST(Twins, HooksOpHasDtypes) {
  NvtxMessage ours = hook("aten::mm(bfloat16[4, 4])");
  NvtxMessage theirs = plain("aten::mm, op_id = 1, sizes = [[4, 4]]");
  EXPECT_EQ(better_twin(ours, theirs), &ours);
  EXPECT_EQ(better_twin(theirs, ours), &ours);
  EXPECT_EQ(better_twin(theirs, theirs), nullptr);
  EXPECT_EQ(better_twin(ours, ours), nullptr);
  EXPECT_EQ(better_twin(hook("aten::add(bfloat16[4])"), theirs), nullptr);
}

TEST(Twins, ScopeIsALayerOnce) {
  NvtxMessage scope = plain("my block");
  NvtxMessage emitted = plain("my block, op_id = 7");
  EXPECT_EQ(better_twin(scope, emitted), &scope);
  EXPECT_EQ(better_twin(emitted, scope), &scope);
  EXPECT_EQ(better_twin(plain("other"), emitted), nullptr);
}

// ---- Python literals

std::vector<std::pair<std::string, std::string>> entries(std::string_view dict) {
  std::vector<std::pair<std::string, std::string>> result;
  for_each_python_entry(dict, [&](std::string_view key, std::string_view value) { result.emplace_back(key, value); });
  return result;
}

TEST(PythonLiterals, EntriesOfADictStandAsTheyAre) {
  EXPECT_THAT(entries(R"({'a': [1, (2, 3)], "b": {'c': None}, 'd': 'x, \'}', 'e': -1.5})"),
              ElementsAre(Pair("a", "[1, (2, 3)]"), Pair("b", "{'c': None}"), Pair("d", R"('x, \'}')"),
                          Pair("e", "-1.5")));
  EXPECT_THAT(entries("{}"), IsEmpty());
}

TEST(PythonLiterals, WhatIsCutOffIsLeftOut) {
  EXPECT_THAT(entries("{'a': 1, 'b': [1"), ElementsAre(Pair("a", "1")));
  for (const char* text : {"", "{", "{'", "{'a", "{'a'", "{'a':", "{'a': '", "{'a': '\\", "{a: 1}", "['a']", "{,"}) {
    EXPECT_THAT(entries(text), IsEmpty()) << text;
  }
}

TEST(PythonLiterals, StringsAndItemsLoseWhatIsAroundThem) {
  EXPECT_EQ(python_string("'a'"), "a");
  EXPECT_EQ(python_string("\"it's\""), "it's");
  for (const char* text : {"", "'", "'a", "'a\"", "1", "['a']"}) EXPECT_EQ(python_string(text), "") << text;
  EXPECT_EQ(python_items("[[1, 2]]"), "[1, 2]");
  for (const char* text : {"", "[", "]", "[1", "'[]'"}) EXPECT_EQ(python_items(text), "") << text;
}

}  // namespace
}  // namespace lamina
