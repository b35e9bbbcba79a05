// What texts mean: NVTX messages, kernel and copy names, list instances, phases.
#include <gtest/gtest.h>

#include "inject/phases.h"
#include "report/activity_names.h"
#include "report/nvtx_message.h"
#include "report/step_name.h"
#include "report/summarize.h"

namespace lamina {
namespace {

using Kind = NvtxMessage::Kind;

void expect_message(std::string_view text, Kind kind, std::string_view name, std::string_view domain = {}) {
  NvtxMessage message = parse_nvtx_message(text, domain);
  EXPECT_EQ(message.kind, kind) << text;
  EXPECT_EQ(message.name, name) << text;
}

TEST(NvtxMessages, ModuleMarkerIsItsLeafAndParameters) {
  expect_message(
      "{'Module': 'LlamaForCausalLM.model.layers.0.self_attn.qkv_proj', 'TrainableParams': {'weight': [6144, 4096]}, "
      "'Inputs': [[2048, 4096]]}",
      Kind::kLayer, "qkv_proj(weight=[6144, 4096])");
  expect_message("{'Module': 'model.layers.0.mlp', 'Inputs': [[2048, 4096]]}", Kind::kLayer, "mlp");
  expect_message("{'Module': 'model.layers.17', 'Inputs': []}", Kind::kLayer, "layers.17");
  expect_message("{'Module': 'model'}", Kind::kLayer, "model");
}

TEST(NvtxMessages, ModuleMarkerMayHaveSeveralParameters) {
  expect_message("{'Module': 'm.norm', 'TrainableParams': {'weight': [4096], 'bias': [4096]}}", Kind::kLayer,
                 "norm(weight=[4096], bias=[4096])");
  expect_message("{'Module': 'm.norm', 'TrainableParams': {}}", Kind::kLayer, "norm");
}

TEST(NvtxMessages, MarkerBehindACallIsIgnored) {
  expect_message("{'Module': 'model.layers.0.mlp', 'Outputs': [[2048, 6144]]}", Kind::kIgnored, "");
}

TEST(NvtxMessages, CompiledRegionIsALayer) {
  expect_message("{'Module': 'Torch Compiled Module (input):LlamaModel', 'Inputs': [[1]]}", Kind::kLayer,
                 "Torch Compiled Module (input):LlamaModel");
}

TEST(NvtxMessages, BrokenModuleMarkerHasAName) {
  for (const char* text : {"{'Module':", "{'Module': '", "{'Module': ''}", "{'Module': [", "{'Module':    "}) {
    expect_message(text, Kind::kLayer, "(unnamed)");
  }
  expect_message("{'Module': 'm', 'TrainableParams': {'weight': [", Kind::kLayer, "m");
}

TEST(NvtxMessages, EmitNvtxIsAnOpWithoutVolatileParts) {
  expect_message("aten::mm, op_id = 2089, sizes = [[4, 4096], [4096, 32000]], input_op_ids = [(2087,0), (2083,0)]",
                 Kind::kOp, "mm([4, 4096], [4096, 32000])");
  expect_message("aten::addmm, seq = 12, sizes = [[1]]", Kind::kOp, "addmm([1])");
  expect_message("aten::relu, op_id = 3", Kind::kOp, "relu");
  expect_message("vllm::attention, op_id = 3, sizes = []", Kind::kOp, "vllm::attention");
}

TEST(NvtxMessages, OpCallOfTheHookIsAnOp) {
  expect_message("aten::mm(bfloat16[4, 4096], bfloat16[4096, 6144])", Kind::kOp,
                 "mm(bfloat16[4, 4096], bfloat16[4096, 6144])");
  expect_message("vllm::unified_attention(q)", Kind::kOp, "vllm::unified_attention(q)");
}

TEST(NvtxMessages, OtherTextIsALayer) {
  expect_message("denoising_step_3_t999", Kind::kLayer, "denoising_step_3_t999");
  expect_message("a, b", Kind::kLayer, "a, b");
  expect_message("forward(x)", Kind::kLayer, "forward(x)");
  expect_message("run (aten::mm)", Kind::kLayer, "run (aten::mm)");
  expect_message("", Kind::kLayer, "(unnamed)");
}

TEST(NvtxMessages, NoiseOfLibrariesIsIgnored) {
  expect_message("ncclAllReduce", Kind::kIgnored, "", "NCCL");
  expect_message("[DG] gemm", Kind::kIgnored, "");
  expect_message("ncclAllReduce", Kind::kLayer, "ncclAllReduce", "mine");
}

// ---- names

TEST(KernelNames, MangledOnesAreReadable) {
  EXPECT_EQ(kernel_name("_Z8rms_normIfEvPT_"), "void rms_norm<float>(float*)");
  EXPECT_EQ(kernel_name("_ZN5flash3fwdEv"), "flash::fwd()");
}

TEST(KernelNames, OthersAreGivenBack) {
  for (const char* name : {"f", "v", "triton_poi_fused_0", "sm90_xmma_gemm_bf16", "_Zbroken", "_Z", ""})
    EXPECT_EQ(kernel_name(name), name);
}

TEST(CopyNames, SayDirectionAndMemories) {
  EXPECT_EQ(memcpy_name(1, 2, 3), "Memcpy HtoD (Pinned -> Device)");
  EXPECT_EQ(memcpy_name(2, 3, 1), "Memcpy DtoH (Device -> Pageable)");
  EXPECT_EQ(memcpy_name(8, 3, 3), "Memcpy DtoD (Device -> Device)");
  EXPECT_EQ(memcpy_name(10, 3, 3), "Memcpy PtoP (Device -> Device)");
  EXPECT_EQ(memcpy_name(99, 99, 255), "Memcpy ? (Unknown -> Unknown)");
  EXPECT_EQ(memset_name(3), "Memset (Device)");
  EXPECT_EQ(memset_name(1u << 31), "Memset (Unknown)");
}

TEST(MergedNames, ListInstancesLoseTheirNumber) {
  EXPECT_EQ(merged_name("layers.0"), "layers.*");
  EXPECT_EQ(merged_name("layers.123(weight=[4])"), "layers.*(weight=[4])");
  EXPECT_EQ(merged_name("transformer.blocks.7"), "transformer.blocks.*");
}

TEST(MergedNames, OthersStay) {
  for (const char* name :
       {"mlp", "conv1", "layers", "3", ".3", "layers.", "layers.3a", "layers.3.mlp", "f(layers.3)", "", "("}) {
    std::string expected = name == std::string(".3") ? ".3" : name;
    EXPECT_EQ(merged_name(name), expected);
  }
}

TEST(StepNames, AreAPhaseAndANumber) {
  auto name = split_step_name("decode_7");
  ASSERT_TRUE(name);
  EXPECT_EQ(name->phase, "decode");
  EXPECT_EQ(name->number, 7);
  EXPECT_EQ(split_step_name("a_b_12")->phase, "a_b");
  for (const char* text : {"decode", "decode_", "_7", "decode_7x", "decode_07", "decode_-1", "decode_1234567890", ""}) {
    EXPECT_FALSE(split_step_name(text)) << text;
  }
}

// ---- phases

std::string phase(std::string_view message, const std::vector<PhasePattern>& patterns = {}) {
  return std::string(phase_of(message, patterns).value_or("(none)"));
}

TEST(PhaseNames, AreToldByTheirPrefix) {
  EXPECT_EQ(phase("phase:prefill"), "prefill");
  EXPECT_EQ(phase("phase: x y"), " x y");
  EXPECT_EQ(phase("phase:"), "(none)");
  EXPECT_EQ(phase("my phase:prefill"), "(none)");
}

TEST(PhaseNames, StepsOfVllmAreOne) {
  EXPECT_EQ(phase("execute_context_4(2048)_generation_0(0)"), "prefill");
  EXPECT_EQ(phase("execute_context_0(0)_generation_32(32)"), "decode");
  EXPECT_EQ(phase("execute_context_1(512)_generation_31(31)"), "prefill");
  EXPECT_EQ(phase("execute_2048_context_4(sq2048sk2048sqsq1048576sqsk1048576)_generation_0(sq0sk0sqsq0sqsk0)"),
            "prefill");
  EXPECT_EQ(phase("execute_32_context_0(sq0sk0sqsq0sqsk0)_generation_32(sq32sk900sqsq32sqsk900)"), "decode");
  EXPECT_EQ(phase("execute_model"), "(none)");
  EXPECT_EQ(phase("execute_context_x_generation_"), "(none)");
}

TEST(PhaseNames, StepsOfTensorRtLlmAreOne) {
  EXPECT_EQ(phase("[Executor] _forward_step 47: 0 ctx reqs, 32 gen reqs"), "decode");
  EXPECT_EQ(phase("[Executor] _forward_step 47: 3 ctx reqs, 32 gen reqs"), "prefill");
  EXPECT_EQ(phase("[Executor] _forward_step: 10 ctx reqs, 0 gen reqs"), "prefill");
  EXPECT_EQ(phase("[Executor] _forward_step 47: 0 ctx reqs, 0 ctx tokens, 32 gen reqs"), "decode");
  EXPECT_EQ(phase("[Executor] _forward_step 47"), "(none)");
  EXPECT_EQ(phase("[Executor] other 0 ctx reqs"), "(none)");
}

TEST(PhaseNames, PatternsAreGlobsOverTheWholeMessage) {
  std::vector<PhasePattern> patterns = {{"denoise", "denoising_step_*"}, {"all", "*_t?"}};
  EXPECT_EQ(phase("denoising_step_3_t999", patterns), "denoise");
  EXPECT_EQ(phase("x_t1", patterns), "all");
  EXPECT_EQ(phase("my denoising_step_3", patterns), "(none)");
  EXPECT_EQ(phase("phase:prefill", {{"other", "*"}}), "prefill");
  EXPECT_EQ(phase("execute_context_4(2048)_generation_0(0)", {{"mine", "execute_*"}}), "mine");
}

}  // namespace
}  // namespace lamina
