// Trees of programs that carry markers of their own, with and without Lamina's hook beside them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "read_back.h"

namespace lamina {
namespace {

using namespace format;
using testing::ElementsAre;

struct Range {
  std::string text;
  std::string domain = {};
};
using Ranges = std::vector<Range>;  // open at once, outermost first

Range hook(std::string text) { return {std::move(text), "lamina"}; }

constexpr uint32_t kTemplate = 1;
constexpr uint32_t kExec = 2;

enum class Way { kEager, kCaptured };
constexpr Way kWays[] = {Way::kEager, Way::kCaptured};

// A program whose phase `run` is kernels of 1 us in stacks of ranges: launched there, or replayed from a graph.
class Program {
 public:
  explicit Program(Way way) : way_(way) {
    if (way == Way::kEager) profile_.thread().phase("run");
    if (way == Way::kCaptured) profile_.thread().graph(kTemplate);
  }

  Program& open(const Range& range) {
    profile_.thread().push(range.text, range.domain);
    return *this;
  }
  Program& close(size_t count = 1) {
    while (count-- > 0) profile_.thread().pop();
    return *this;
  }
  Program& kernel() {
    if (way_ == Way::kEager) {
      profile_.thread().launch(++kernels_);
    } else {
      profile_.thread().node(kTemplate, kernels_++, "k");
    }
    return *this;
  }
  Program& call(const Ranges& ranges) {
    for (const Range& range : ranges) open(range);
    return kernel().close(ranges.size());
  }

  ReadBack run() {
    ThreadBuilder& thread = profile_.thread();
    if (way_ == Way::kCaptured) thread.instantiate(kExec, kTemplate).phase("run").launch_graph(1, kExec);
    thread.end_phase();
    for (uint32_t i = 0; i < kernels_; ++i) {
      if (way_ == Way::kEager) profile_.kernel(i + 1, "k", 1);
      if (way_ == Way::kCaptured) profile_.kernel(1, "k", 1, {.node = node_id(kExec, i)});
    }
    return read_back(profile_);
  }

 private:
  Way way_;
  ProfileBuilder profile_;
  uint32_t kernels_ = 0;
};

std::string model(Way way, const Ranges& ranges) { return model_text(Program(way).call(ranges).run(), "run"); }

const PhaseReport& run_phase(const ReadBack& result) { return result.report.phases.back(); }
const ModelNode& first_row(const ReadBack& result) { return run_phase(result).steps.at(0).model.at(0); }

// ---- markers alone

constexpr const char* kModel = "{'Module': 'LlamaForCausalLM', 'Inputs': [[4]]}";
constexpr const char* kLayer0 = "{'Module': 'LlamaForCausalLM.model.layers.0'}";
constexpr const char* kLayer1 = "{'Module': 'LlamaForCausalLM.model.layers.1'}";
constexpr const char* kMlp =
    "{'Module': 'LlamaForCausalLM.model.layers.0.mlp', 'TrainableParams': {'w': [8, 4]}, 'Inputs': [[2, 4]]}";
constexpr const char* kMlpOutput = "{'Module': 'LlamaForCausalLM.model.layers.0.mlp', 'Outputs': [[2, 8]]}";

TEST(Markers, ModulesAreTheTree) {
  for (Way way : kWays) {
    EXPECT_EQ(model(way, {{kModel}, {kLayer0}, {kMlp}}),
              "LlamaForCausalLM 1\n  layers.0 1\n    mlp(w=[8, 4]) 1\n      k 1 [mlp([2, 4])]\n");
  }
}

TEST(Markers, NumberedLayersAreOneSummaryRow) {
  for (Way way : kWays) {
    ReadBack result = Program(way).open({kModel}).call({{kLayer0}}).call({{kLayer1}}).close().run();
    EXPECT_EQ(summary_text(result, "run"), "LlamaForCausalLM 2 x1\n  layers.* 2 x2\n    k 2 x2\n");
    EXPECT_EQ(model_text(result, "run"), "LlamaForCausalLM 2\n  layers.0 1\n    k 1\n  layers.1 1\n    k 1\n");
  }
}

TEST(Markers, KernelOfAnOutputRangeBelongsToTheLayerAround) {
  for (Way way : kWays) {
    ReadBack result = Program(way).open({kLayer0}).call({{kMlp}}).call({{kMlpOutput}}).close().run();
    EXPECT_EQ(model_text(result, "run"), "layers.0 2\n  mlp(w=[8, 4]) 1\n    k 1 [mlp([2, 4])]\n  k 1\n");
  }
}

TEST(Markers, InputsOfAModuleStandInForOps) {
  for (Way way : kWays) {
    EXPECT_EQ(model(way, {{kMlp}, {"aten::mm(a)"}}), "mlp(w=[8, 4]) 1\n  k 1 [mm(a)]\n");
    EXPECT_EQ(model(way, {{kMlp}, {"plain"}}), "mlp(w=[8, 4]) 1\n  plain 1\n    k 1\n");
    EXPECT_EQ(model(way, {{"aten::mm(a)"}, {kMlp}}), "mlp(w=[8, 4]) 1\n  k 1 [mlp([2, 4])]\n");
  }
}

TEST(Markers, ReplayOfANodeOfNoLayerHasTheInputsOfTheLaunchingModule) {
  ProfileBuilder p;
  p.thread().graph(kTemplate).node(kTemplate, 0, "k").push("plain").node(kTemplate, 1, "k").pop();
  p.thread().instantiate(kExec, kTemplate).phase("decode").push(kMlp).launch_graph(1, kExec).pop();
  p.kernel(1, "k", 1, {.node = node_id(kExec, 0)});
  p.kernel(1, "k", 1, {.node = node_id(kExec, 1)});
  EXPECT_EQ(model_text(read_back(p), "decode"), "mlp(w=[8, 4]) 2\n  k 1 [mlp([2, 4])]\n  plain 1\n    k 1\n");
}

TEST(Markers, CompiledRegionIsOneRange) {
  for (Way way : kWays) {
    Program program(way);
    program.open({kModel}).call({{"{'Module': 'Torch Compiled Module (input):LlamaModel', 'Inputs': [[4]]}"}});
    program.call({{"{'Module': 'Torch Compiled Module (output):LlamaModel', 'Outputs': [[4]]}"}}).close();
    EXPECT_EQ(model_text(program.run(), "run"),
              "LlamaForCausalLM 2\n  LlamaModel 1\n    k 1 [LlamaModel([4])]\n  k 1 [LlamaForCausalLM([4])]\n");
  }
}

TEST(Markers, IdsOfEmitNvtxMakeNoRows) {
  for (Way way : kWays) {
    Program program(way);
    program.open({"block"}).call({{"aten::mm, op_id = 1, sizes = [[4]]"}}).call({{"aten::mm, op_id = 2, sizes = [[4]]"}});
    EXPECT_EQ(model_text(program.close().run(), "run"), "block 2\n  k 1 [mm([4])]\n  k 1 [mm([4])]\n");
  }
}

TEST(Markers, WhatTheBenchmarkIgnoresStandsApart) {
  for (Way way : kWays) {
    Program program(way);
    program.open({"model"}).open({"layer_wise_benchmarks layer_idx 3", "NVTX"}).kernel();
    program.call({{"layer_wise_benchmarks ignore", "NVTX"}});
    program.open({"layer_wise_benchmarks ignore", "NVTX"}).call({{"copy"}}).close().close(2);
    EXPECT_EQ(summary_text(program.run(), "run"),
              "model 1 x1\n  layers.* 1 x1\n    k 1 x1\n(ignored) 2 x2\n  k 1 x1\n  copy 1 x1\n    k 1 x1\n");
  }
}

// By where the node was created or by where the graph is launched.
TEST(Markers, WhatTheBenchmarkIgnoresStandsApartInReplays) {
  ProfileBuilder p;
  p.thread().push("model").graph(kTemplate).push("layer_wise_benchmarks ignore").node(kTemplate, 0, "k").pop();
  p.thread().node(kTemplate, 1, "k").pop().instantiate(kExec, kTemplate);
  p.thread().phase("decode").push("model").launch_graph(1, kExec).pop().end_phase();
  p.thread().phase("decode").push("model").push("layer_wise_benchmarks ignore").launch_graph(2, kExec);
  for (uint32_t launch : {1, 2}) {
    for (uint32_t i = 0; i < 2; ++i) p.kernel(launch, "k", 1, {.node = node_id(kExec, i)});
  }
  ReadBack result = read_back(p);
  EXPECT_EQ(model_text(result, "decode", 1), "model 1\n  k 1\n(ignored) 1\n  k 1\n");
  EXPECT_EQ(model_text(result, "decode", 2), "model 0\n(ignored) 2\n  model 1\n    k 1\n  k 1\n");
}

TEST(Markers, ArgumentsOfTheBenchmarkAreContext) {
  ProfileBuilder p;
  for (uint32_t i = 1; i <= 2; ++i) {
    p.thread().push("layer_wise_benchmarks args {\"batch_size\": 4}").launch(i).pop();
    p.kernel(i, "k", 1);
  }
  ReadBack result = read_back(p);
  EXPECT_THAT(result.account().context_marks, ElementsAre("{\"batch_size\": 4}"));
  EXPECT_EQ(summary_text(result, "all"), "(no module) 2 x1\n  k 2 x2\n");
}

TEST(Markers, DenoisingStepsThatAreNoPhasesAreOneSummaryRow) {
  for (Way way : kWays) {
    Program program(way);
    for (const char* step : {"denoising_step_0_t999", "denoising_step_1_t749"}) {
      program.call({{step}, {"transformer.blocks.0.attn1.to_q in=[[1, 8]]"}});
    }
    EXPECT_EQ(summary_text(program.run(), "run"), "denoising_step 2 x2\n  to_q 2 x2\n    k 2 x2\n");
  }
}

// ---- the hook alone

TEST(Hook, InstancesOfAClassAreOneSummaryRow) {
  for (Way way : kWays) {
    Program program(way);
    program.open(hook("Llama @ Llama")).call({hook("Block(w=bfloat16[4]) @ Llama.layers.0")});
    ReadBack result = program.call({hook("Block(w=bfloat16[4]) @ Llama.layers.1")}).close().run();
    EXPECT_EQ(summary_text(result, "run"), "Llama 2 x1\n  Block(w=bfloat16[4]) 2 x2\n    k 2 x2\n");
  }
}

TEST(Hook, ModelRowsHaveThePathOfTheirInstance) {
  for (Way way : kWays) {
    ReadBack result = Program(way).call({hook("Llama @ Llama#2"), hook("Block @ Llama#2.layers.0")}).run();
    const ModelNode& root = first_row(result);
    EXPECT_EQ(root.path, "Llama#2");
    EXPECT_EQ(root.children.at(0).path, "Llama#2.layers.0");
    EXPECT_EQ(root.children.at(0).children.at(0).path, "");  // the kernel
  }
}

// Blocks of one class are told apart by their instance, not by their name.
TEST(Hook, LaunchAndCaptureShareOnlyTheSameInstance) {
  ProfileBuilder p;
  auto block = [](int i) { return "Block @ Llama.layers." + std::to_string(i); };
  p.thread().push("Llama @ Llama", "lamina").push(block(0), "lamina").graph(kTemplate).node(kTemplate, 0, "k");
  p.thread().pop().pop().instantiate(kExec, kTemplate);
  for (uint32_t i = 0; i < 2; ++i) {
    p.thread().phase("decode").push("Llama @ Llama", "lamina").push(block(static_cast<int>(i)), "lamina");
    p.thread().launch_graph(i + 1, kExec).pop().pop().end_phase();
    p.kernel(i + 1, "k", 1, {.node = node_id(kExec, 0)});
  }
  ReadBack result = read_back(p);
  EXPECT_EQ(model_text(result, "decode", 1), "Llama 1\n  Block 1\n    k 1\n");
  EXPECT_EQ(model_text(result, "decode", 2), "Llama 1\n  Block 1\n    Block 1\n      k 1\n");
}

// ---- both: one call told twice counts once, whichever is the outer range

struct Twins {
  Range ours;
  Range theirs;
};

const Twins kCalls[] = {  // a model, a layer of it, a module of that
    {hook("LlamaForCausalLM @ LlamaForCausalLM"), {kModel}},
    {hook("LlamaDecoderLayer @ LlamaForCausalLM.model.layers.0"), {kLayer0}},
    {hook("MLP(w=bfloat16[8, 4]) @ LlamaForCausalLM.model.layers.0.mlp"), {kMlp}},
};
constexpr std::string_view kJoinedTree =
    "LlamaForCausalLM 1\n  LlamaDecoderLayer 1\n    MLP(w=bfloat16[8, 4]) 1\n      k 1 [MLP([2, 4])]\n";

Ranges nested(bool ours_outside) {
  Ranges ranges;
  for (const Twins& call : kCalls) {
    ranges.push_back(ours_outside ? call.ours : call.theirs);
    ranges.push_back(ours_outside ? call.theirs : call.ours);
  }
  return ranges;
}

TEST(Joins, ModuleToldTwiceCountsOnce) {
  for (Way way : kWays) {
    for (bool ours_outside : {true, false}) {
      ReadBack result = Program(way).call(nested(ours_outside)).run();
      EXPECT_EQ(model_text(result, "run"), kJoinedTree);
      const ModelNode& layer = first_row(result).children.at(0);
      EXPECT_EQ(layer.path, "LlamaForCausalLM.model.layers.0");
      EXPECT_EQ(layer.children.at(0).path, "LlamaForCausalLM.model.layers.0.mlp");
    }
  }
}

// Whatever the order of the two at each level, and whichever of them is there at all, there is one row a call.
TEST(Joins, AnyMixtureOfBothIsOneRowACall) {
  for (Way way : kWays) {
    for (int mix = 0; mix < 64; ++mix) {
      Ranges ranges;
      std::vector<std::string> names;
      for (int level = 0; level < 3; ++level) {
        const auto& [ours, theirs] = kCalls[level];
        int choice = mix >> 2 * level & 3;  // ours, theirs, ours outside of theirs, theirs outside of ours
        if (choice == 0 || choice == 2) ranges.push_back(ours);
        if (choice != 0) ranges.push_back(theirs);
        if (choice == 3) ranges.push_back(ours);
      }
      ReadBack result = Program(way).call(ranges).run();
      size_t depth = 0;
      for (auto* rows = &run_phase(result).summary; !rows->empty(); rows = &rows->at(0).children, ++depth) {
        EXPECT_EQ(rows->size(), 1u) << mix;
        EXPECT_EQ(rows->at(0).invocations, 1) << mix;
      }
      EXPECT_EQ(depth, 4u) << mix;
    }
  }
}

TEST(Joins, SummaryCountsACallOnce) {
  for (bool ours_outside : {true, false}) {
    ProfileBuilder p;
    for (uint32_t i = 1; i <= 3; ++i) {
      Ranges ranges = nested(ours_outside);
      for (const Range& range : ranges) p.thread().push(range.text, range.domain);
      p.thread().launch(i);
      for (size_t left = ranges.size(); left > 0; --left) p.thread().pop();
      p.kernel(i, "k", 1);
    }
    EXPECT_EQ(summary_text(read_back(p), "all"),
              "LlamaForCausalLM 3 x3\n  LlamaDecoderLayer 3 x3\n    MLP(w=bfloat16[8, 4]) 3 x3\n      k 3 x3\n");
  }
}

TEST(Joins, CallOfTwoRangesTakesTheTimeOfTheOuter) {
  ProfileBuilder p;
  p.thread().push(kCalls[2].theirs.text).push(kCalls[2].ours.text, "lamina").launch(1).pop().pop();  // 1 us an event
  p.kernel(1, "k", 1);
  EXPECT_DOUBLE_EQ(read_back(p).report.phases.at(0).steps.at(0).model.at(0).cpu_time_us, 3);
}

TEST(Joins, RootsMayHaveOtherNames) {
  for (Way way : kWays) {
    Range ours = hook("LlamaForCausalLM @ LlamaForCausalLM");
    Range mlp = hook("MLP @ LlamaForCausalLM.model.layers.0.mlp");
    Range sglang = {"{'Module': 'model.model.layers.0.mlp'}"};
    EXPECT_EQ(model(way, {ours, {"{'Module': 'model'}"}, mlp, sglang}), "LlamaForCausalLM 1\n  MLP 1\n    k 1\n");
    EXPECT_EQ(model(way, {{"{'Module': 'model'}"}, ours, sglang, mlp}), "LlamaForCausalLM 1\n  MLP 1\n    k 1\n");
  }
}

TEST(Joins, OpToldTwiceKeepsItsDtypes) {
  Range ours = hook("aten::mm(bfloat16[4, 8])");
  Range linear = hook("aten::linear(bfloat16[4, 8], None)");
  Range theirs = {"aten::mm, op_id = 9, sizes = [[4, 8]]"};
  Range their_linear = {"aten::linear, op_id = 8, sizes = [[4, 8], []]"};
  std::string expected = "a 1\n  k 1 [mm(bfloat16[4, 8]) <- linear(bfloat16[4, 8], None)]\n";
  for (Way way : kWays) {
    EXPECT_EQ(model(way, {{"a"}, linear, their_linear, ours, theirs}), expected);
    EXPECT_EQ(model(way, {{"a"}, their_linear, linear, theirs, ours}), expected);
  }
}

TEST(Joins, KernelBetweenTwoRangesOfAnOpHasWhatIsKnownThen) {
  Range ours = hook("aten::mm(bfloat16[4, 8])");
  Range theirs = {"aten::mm, op_id = 9, sizes = [[4, 8]]"};
  for (Way way : kWays) {
    ReadBack result = Program(way).open({"a"}).open(theirs).kernel().call({ours}).close(2).run();
    EXPECT_EQ(model_text(result, "run"), "a 2\n  k 1 [mm([4, 8])]\n  k 1 [mm(bfloat16[4, 8])]\n");
  }
}

// Ops call themselves: two pairs are two ops.
TEST(Joins, OpInsideOfItselfIsTwo) {
  Range ours = hook("aten::to(bfloat16[4])");
  Range theirs = {"aten::to, op_id = 9, sizes = [[4]]"};
  for (Way way : kWays) {
    EXPECT_EQ(model(way, {{"a"}, ours, theirs, ours, theirs}), "a 1\n  k 1 [to(bfloat16[4]) <- to(bfloat16[4])]\n");
    EXPECT_EQ(model(way, {{"a"}, theirs, theirs}), "a 1\n  k 1 [to([4]) <- to([4])]\n");
  }
}

TEST(Joins, RecordFunctionScopeIsALayerOnce) {
  for (Way way : kWays) {
    EXPECT_EQ(model(way, {{"block"}, {"block, op_id = 4"}}), "block 1\n  k 1\n");
    EXPECT_EQ(model(way, {{"block, op_id = 4"}, {"block"}}), "block 1\n  k 1\n");
  }
}

TEST(Joins, TimeOfAScopeIsNotThatOfTheLayerAround) {
  ProfileBuilder p;  // 1 us an event
  p.thread().push("a").push("block, op_id = 4").launch(1).push("block").launch(2).pop().pop().pop();
  p.kernel(1, "k", 1);
  p.kernel(2, "k", 1);
  ReadBack result = read_back(p);
  EXPECT_EQ(model_text(result, "all"), "a 2\n  block 1\n    k 1\n  k 1 [block]\n");
  EXPECT_DOUBLE_EQ(first_row(result).cpu_time_us, 5);
  EXPECT_DOUBLE_EQ(first_row(result).children.at(0).cpu_time_us, 3);
}

TEST(Joins, CompiledRegionIsTheCallOfItsClass) {
  Range ours = hook("LlamaModel @ LlamaForCausalLM.model");
  Range region = {"{'Module': 'Torch Compiled Module (input):LlamaModel', 'Inputs': [[4]]}"};
  for (Way way : kWays) {
    EXPECT_EQ(model(way, {ours, region}), "LlamaModel 1\n  k 1 [LlamaModel([4])]\n");
    EXPECT_EQ(model(way, {region, ours}), "LlamaModel 1\n  k 1 [LlamaModel([4])]\n");
  }
}

TEST(Joins, OtherCallsStayApart) {
  Range ours = hook("MLP @ LlamaForCausalLM.model.layers.0.mlp");
  for (Way way : kWays) {
    EXPECT_EQ(model(way, {ours, {kLayer1}}), "MLP 1\n  layers.1 1\n    k 1\n");
    EXPECT_EQ(model(way, {ours, {"mlp"}}), "MLP 1\n  mlp 1\n    k 1\n");
    EXPECT_EQ(model(way, {ours, {"plain"}, {kMlp}}), "MLP 1\n  plain 1\n    mlp(w=[8, 4]) 1\n      k 1 [mlp([2, 4])]\n");
    EXPECT_EQ(model(way, {ours, ours}), "MLP 1\n  MLP 1\n    k 1\n");
  }
}

// A marker tells of one call: a second module call inside of it is another one.
TEST(Joins, SecondCallInsideOfAMarkerIsItsOwn) {
  for (Way way : kWays) {
    Program program(way);
    program.open(kCalls[2].theirs).call({kCalls[2].ours}).call({kCalls[2].ours}).close();
    EXPECT_EQ(model_text(program.run(), "run"),
              "MLP(w=bfloat16[8, 4]) 2\n  k 1 [MLP([2, 4])]\n  MLP(w=bfloat16[8, 4]) 1\n    k 1\n");
  }
}

TEST(Joins, SecondMarkerInsideOfACallIsItsOwn) {
  for (Way way : kWays) {
    ReadBack result = Program(way).open(kCalls[1].ours).call({{kLayer0}}).call({{kLayer0}}).close().run();
    EXPECT_EQ(model_text(result, "run"), "LlamaDecoderLayer 2\n  k 1\n  layers.0 1\n    k 1\n");
  }
}

// What was launched before the hook's range opened already has a row: that row is the call's.
TEST(Joins, KernelBetweenTheTwoKeepsTheOuterName) {
  for (Way way : kWays) {
    Program program(way);
    program.open(kCalls[2].theirs).kernel().call({kCalls[2].ours}).close();
    EXPECT_EQ(model_text(program.run(), "run"), "mlp(w=[8, 4]) 2\n  k 1 [mlp([2, 4])]\n  k 1 [mlp([2, 4])]\n");
  }
}

TEST(Joins, OutputRangeBesideTheHookIsNoRow) {
  for (Way way : kWays) {
    Program program(way);
    program.open(kCalls[2].ours).call({{kMlp}}).call({{kMlpOutput}}).close();
    EXPECT_EQ(model_text(program.run(), "run"), "MLP(w=bfloat16[8, 4]) 2\n  k 1 [MLP([2, 4])]\n  k 1 [MLP([2, 4])]\n");
  }
}

TEST(Joins, InnerRangeThatOutlivesTheOuterGoesOnAlone) {
  ProfileBuilder p;
  p.thread().push("around").push(kMlp).push(kCalls[2].ours.text, "lamina").launch(1).pop_at(1).launch(2).pop().pop();
  p.kernel(1, "k", 1);
  p.kernel(2, "k", 2);
  EXPECT_EQ(model_text(read_back(p), "all"),
            "around 3\n  MLP(w=bfloat16[8, 4]) 1\n    k 1 [MLP([2, 4])]\n  MLP(w=bfloat16[8, 4]) 2\n    k 2\n");
}

TEST(Joins, PieceOfAStreamMayEndBetweenTheTwo) {
  ProfileBuilder p;
  p.thread().push(kMlp);
  p.flush();
  p.thread().state().push(kCalls[2].ours.text, "lamina").launch(1).pop().pop();
  p.kernel(1, "k", 1);
  EXPECT_EQ(model_text(read_back(p), "all"), "MLP(w=bfloat16[8, 4]) 1\n  k 1 [MLP([2, 4])]\n");
}

TEST(Joins, AreFoundAgainAfterALoss) {
  ProfileBuilder p;
  p.thread().push("lost");
  p.flush();
  p.thread().pop().push(kCalls[2].ours.text, "lamina").push(kMlp).lose();
  p.thread().launch(1).state().launch(2).pop().launch(3).pop();
  for (uint32_t i = 1; i <= 3; ++i) p.kernel(i, "k", 1);
  EXPECT_EQ(summary_text(read_back(p), "all"), "lost 0 x1\nMLP(w=bfloat16[8, 4]) 3 x2\n  k 3 x3\n");
}

TEST(Joins, ReplayUnderTheSameCallsAddsNone) {
  for (bool ours_outside : {true, false}) {
    ProfileBuilder p;
    Ranges ranges = nested(ours_outside);
    auto open = [&] {
      for (const Range& range : ranges) p.thread().push(range.text, range.domain);
    };
    auto close = [&] {
      for (size_t left = ranges.size(); left > 0; --left) p.thread().pop();
    };
    p.thread().graph(kTemplate);
    open();
    p.thread().node(kTemplate, 0, "k");
    close();
    p.thread().instantiate(kExec, kTemplate).phase("decode");
    open();
    p.thread().launch_graph(1, kExec);
    close();
    p.thread().end_phase();
    p.kernel(1, "k", 1, {.node = node_id(kExec, 0)});
    EXPECT_EQ(model_text(read_back(p), "decode"), kJoinedTree);
  }
}

TEST(Joins, CallWithoutAKernelIsARowToo) {
  ProfileBuilder p;
  p.thread().push(kMlp).push(kCalls[2].ours.text, "lamina").pop().pop();
  p.thread().push("empty").pop().push("a").launch(1).pop().push("open");
  p.kernel(1, "k", 1);
  EXPECT_EQ(model_text(read_back(p), "all"), "MLP(w=bfloat16[8, 4]) 0\nempty 0\na 1\n  k 1\nopen 0\n");
}

}  // namespace
}  // namespace lamina
