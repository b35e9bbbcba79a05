// What texts mean: kernel and copy names, list instances, paths, phases. NVTX messages: nvtx_message_test.cpp.
#include <gtest/gtest.h>

#include "inject/phases.h"
#include "report/attribution/activity_names.h"
#include "report/attribution/module_path.h"
#include "report/tree/step_name.h"
#include "report/tree/summarize.h"

namespace lamina {
namespace {

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

// ---- instance paths

TEST(ModulePaths, LeafIsTheLastNameWithItsList) {
  EXPECT_EQ(path_leaf("LlamaForCausalLM.model.layers.0.self_attn.qkv_proj"), "qkv_proj");
  EXPECT_EQ(path_leaf("model.layers.17"), "layers.17");
  EXPECT_EQ(path_leaf("layers.17"), "layers.17");
  for (const char* path : {"model", "17", ""}) EXPECT_EQ(path_leaf(path), path);
  EXPECT_EQ(path_leaf("model."), "");
}

TEST(ModulePaths, OfOneInstanceAgreeBelowTheRoot) {
  constexpr const char* kHook = "LlamaForCausalLM.model.layers.0.mlp";
  EXPECT_TRUE(same_instance(kHook, kHook));
  EXPECT_TRUE(same_instance("LlamaForCausalLM#2.model.layers.0.mlp", kHook));
  EXPECT_TRUE(same_instance(kHook, "model.model.layers.0.mlp"));  // SGLang
  EXPECT_TRUE(same_instance(kHook, "model.layers.0.mlp"));
  EXPECT_TRUE(same_instance(kHook, "layers.0.mlp"));
  EXPECT_TRUE(same_instance("Pipeline.llm.model.layers.0.mlp", kHook));
  EXPECT_TRUE(same_instance("LlamaModel.layers.0.mlp", kHook));
  EXPECT_TRUE(same_instance("LlamaForCausalLM", "model"));
  EXPECT_TRUE(same_instance("A.model.layers.5", "layers.5"));
}

TEST(ModulePaths, OfOtherInstancesDoNot) {
  constexpr const char* kHook = "LlamaForCausalLM.model.layers.0.mlp";
  for (const char* other : {"LlamaForCausalLM.model.layers.1.mlp", "LlamaForCausalLM.model.layers.0",
                            "LlamaForCausalLM.model.layers.0.mlp.mlp", "LlamaForCausalLM.mlp", "model", "x.ayers.0.mlp",
                            "LlamaForCausalLM", "", "."}) {
    EXPECT_FALSE(same_instance(kHook, other)) << other;
    EXPECT_FALSE(same_instance(other, kHook)) << other;
  }
  EXPECT_FALSE(same_instance("A.model.experts.5", "layers.5"));
  EXPECT_FALSE(same_instance("A.model.layers.5", "B.5"));
  EXPECT_FALSE(same_instance("A.proj", "A.proj.proj"));
  EXPECT_FALSE(same_instance("A#2.proj", "A.proj.proj"));
  EXPECT_FALSE(same_instance("", ""));
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
  EXPECT_EQ(phase("execute_context_1(512)_generation_31(31)"), "mixed");
  EXPECT_EQ(phase("b=32 s=1 past=2090 NP4"), "decode");
  EXPECT_EQ(phase("b=1 s=512 past=0"), "prefill");
  EXPECT_EQ(phase("b=1 s=x"), "(none)");
  EXPECT_EQ(phase("denoising_step_3_t999"), "denoise");
  EXPECT_EQ(phase("denoising_step_"), "(none)");
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
