// Graph replays: which layer a node's kernel belongs to.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "read_back.h"

namespace lamina {
namespace {

using namespace format;
using Ran = ProfileBuilder::Ran;

constexpr uint32_t kTemplate = 1;
constexpr uint32_t kExec = 2;

// A kernel of node `number` of the executable graph.
Ran of_node(uint32_t number, uint32_t exec = kExec) { return {.node = node_id(exec, number)}; }

// Two layers with a node each, instantiated.
void capture_two_layers(ProfileBuilder& p) {
  p.thread().push("capture").graph(kTemplate).push("a").node(kTemplate, 0, "gemm").pop();
  p.thread().push("b").node(kTemplate, 1, "silu").pop().pop().instantiate(kExec, kTemplate);
}

TEST(Graphs, KernelOfAReplayStandsInTheLayerOfItsNode) {
  ProfileBuilder p;
  capture_two_layers(p);
  p.thread().phase("decode").launch_graph(1, kExec).end_phase();
  p.kernel(1, "gemm", 1, of_node(0));
  p.kernel(1, "silu", 2, of_node(1));
  ReadBack result = read_back(p);
  EXPECT_EQ(model_text(result, "decode"), "capture 3\n  a 1\n    gemm 1\n  b 2\n    silu 2\n");
  EXPECT_EQ(result.account().launches[3], 1);
}

TEST(Graphs, PhaseOfTheCaptureIsNotThatOfTheReplay) {
  ProfileBuilder p;
  p.thread().phase("warmup").push("a").graph(kTemplate).node(kTemplate, 0, "gemm").pop().instantiate(kExec, kTemplate);
  p.thread().end_phase().phase("decode").launch_graph(1, kExec).end_phase();
  p.kernel(1, "gemm", 1, of_node(0));
  EXPECT_EQ(model_text(read_back(p), "decode"), "a 1\n  gemm 1\n");
}

TEST(Graphs, NodeOfNoLayerStandsWhereTheLaunchDoes) {
  ProfileBuilder p;
  p.thread().graph(kTemplate).node(kTemplate, 0, "gemm").instantiate(kExec, kTemplate);
  p.thread().push("model").launch_graph(1, kExec).pop().launch_graph(2, kExec);
  p.kernel(1, "gemm", 1, of_node(0));
  p.kernel(2, "gemm", 2, of_node(0));
  EXPECT_EQ(model_text(read_back(p), "all"), "model 1\n  gemm 1\n(no module) 2\n  gemm 2\n");
}

TEST(Graphs, PrefixThatLaunchAndCaptureShareAppearsOnce) {
  ProfileBuilder p;
  p.thread().push("model").push("capture").graph(kTemplate).push("a").node(kTemplate, 0, "gemm").pop().pop().pop();
  p.thread().instantiate(kExec, kTemplate);
  p.thread().phase("decode").push("model").push("replay").launch_graph(1, kExec).pop().pop();
  p.kernel(1, "gemm", 1, of_node(0));
  EXPECT_EQ(model_text(read_back(p), "decode"), "model 1\n  replay 1\n    capture 1\n      a 1\n        gemm 1\n");
}

TEST(Graphs, LaunchUnderTheSameLayersAddsNone) {
  ProfileBuilder p;
  p.thread()
      .push("model")
      .push("a")
      .graph(kTemplate)
      .node(kTemplate, 0, "gemm")
      .pop()
      .pop()
      .instantiate(kExec, kTemplate);
  p.thread().push("model").push("a").launch_graph(1, kExec).pop().pop();
  p.kernel(1, "gemm", 1, of_node(0));
  EXPECT_EQ(summary_text(read_back(p), "all"), "model 1 x2\n  a 1 x2\n    gemm 1 x1\n");
}

TEST(Graphs, LaunchesOfOneGraphInAStepAreTwoCalls) {
  ProfileBuilder p;
  capture_two_layers(p);
  p.thread().launch_graph(1, kExec).launch_graph(2, kExec);
  p.kernel(1, "gemm", 1, of_node(0));
  p.kernel(2, "gemm", 2, of_node(0));
  EXPECT_EQ(model_text(read_back(p), "all"),
            "capture 0\n  a 0\n  b 0\ncapture 1\n  a 1\n    gemm 1\ncapture 2\n  a 2\n    gemm 2\n");
}

TEST(Graphs, ModuleCalledTwiceInACaptureIsTwoCalls) {
  ProfileBuilder p;
  p.thread().graph(kTemplate).push("a").node(kTemplate, 0, "gemm").pop().push("a").node(kTemplate, 1, "gemm").pop();
  p.thread().instantiate(kExec, kTemplate).phase("decode").launch_graph(1, kExec).end_phase();
  p.kernel(1, "gemm", 1, of_node(0));
  p.kernel(1, "gemm", 2, of_node(1));
  ReadBack result = read_back(p);
  EXPECT_EQ(model_text(result, "decode"), "a 1\n  gemm 1\na 2\n  gemm 2\n");
  EXPECT_EQ(summary_text(result, "decode"), "a 3 x2\n  gemm 3 x2\n");
}

TEST(Graphs, OpsOfTheCaptureAreTheTrace) {
  ProfileBuilder p;
  p.thread()
      .graph(kTemplate)
      .push("a")
      .push("aten::linear(x)")
      .push("aten::mm(y)")
      .node(kTemplate, 0, "gemm")
      .pop()
      .pop()
      .pop();
  p.thread().instantiate(kExec, kTemplate).phase("decode").push("aten::replay(z)").launch_graph(1, kExec);
  p.kernel(1, "gemm", 1, of_node(0));
  EXPECT_EQ(model_text(read_back(p), "decode"), "a 1\n  gemm 1 [mm(y) <- linear(x)]\n");
}

TEST(Graphs, CopiesAndSetsAreNodesToo) {
  ProfileBuilder p;
  p.thread().graph(kTemplate).push("a").node(kTemplate, 0).node(kTemplate, 1).pop().instantiate(kExec, kTemplate);
  p.thread().phase("decode").launch_graph(1, kExec);
  p.memcpy_htod(1, 1, node_id(kExec, 0));
  p.memset_device(1, 2, node_id(kExec, 1));
  EXPECT_EQ(model_text(read_back(p), "decode"), "a 3\n  Memcpy HtoD (Pinned -> Device) 1\n  Memset (Device) 2\n");
}

TEST(Graphs, CloneOfAGraphKeepsItsLayers) {
  ProfileBuilder p;
  p.thread()
      .graph(kTemplate)
      .push("a")
      .node(kTemplate, 0, "gemm")
      .pop()
      .clone_graph(5, kTemplate)
      .destroy_graph(kTemplate);
  p.thread().instantiate(kExec, 5).phase("decode").launch_graph(1, kExec);
  p.kernel(1, "gemm", 1, of_node(0));
  EXPECT_EQ(model_text(read_back(p), "decode"), "a 1\n  gemm 1\n");
}

TEST(Graphs, NumbersOfRemovedNodesStayFree) {
  ProfileBuilder p;
  p.thread().graph(kTemplate).push("a").node(kTemplate, 0, "gemm").pop().push("b").node(kTemplate, 4, "silu").pop();
  p.thread().instantiate(kExec, kTemplate).phase("decode").launch_graph(1, kExec);
  p.kernel(1, "silu", 1, of_node(4));
  EXPECT_EQ(model_text(read_back(p), "decode"), "b 1\n  silu 1\n");
}

// The bodies are cloned after the graph itself, and numbered in the order in which they are destroyed.
TEST(Graphs, ChildGraphsAreNumberedInTheOrderOfTheirDestruction) {
  ProfileBuilder p;
  p.thread().graph(10).push("child").node(10, 0, "c").pop().graph(11).push("other").node(11, 0, "o").pop();
  p.thread().graph(kTemplate).push("a").node(kTemplate, 0, "gemm").pop();
  p.thread().graph(kExec).clone_node(node_id(kExec, 0), node_id(kTemplate, 0));
  p.thread().graph(20).clone_node(node_id(20, 0), node_id(10, 0)).graph(21).clone_node(node_id(21, 0), node_id(11, 0));
  p.thread().destroy_graph(21).destroy_graph(20).exec(kExec, kTemplate).phase("decode").launch_graph(1, kExec);
  p.kernel(1, "gemm", 1, of_node(0));
  p.kernel(1, "o", 2, of_node(1));
  p.kernel(1, "c", 4, of_node(2));
  EXPECT_EQ(summary_text(read_back(p), "decode"), "child 4 x1\n  c 4 x1\nother 2 x1\n  o 2 x1\na 1 x1\n  gemm 1 x1\n");
}

TEST(Graphs, NodeWhoseCreationWasNotSeenStandsApart) {
  ProfileBuilder p;
  capture_two_layers(p);
  p.thread().phase("decode").push("model").launch_graph(1, kExec).pop();
  p.kernel(1, "x", 1, of_node(77));
  p.kernel(1, "y", 2, of_node(0, 99));
  ReadBack result = read_back(p);
  EXPECT_EQ(model_text(result, "decode"), "model 3\n  (unknown node) 3\n    x 1\n    y 2\n");
  EXPECT_EQ(result.placed(Placement::kUnknownNode), 2);
}

TEST(Graphs, OtherKernelThanWasCapturedStandsApart) {
  ProfileBuilder p;
  capture_two_layers(p);
  p.thread().phase("decode").launch_graph(1, kExec);
  p.kernel(1, "gemm", 1, of_node(0));
  p.kernel(1, "gemm", 2, of_node(1));
  ReadBack result = read_back(p);
  EXPECT_EQ(result.placed(Placement::kAmbiguousNode), 1);
  EXPECT_EQ(summary_text(result, "decode"),
            "(ambiguous node) 2 x1\n  gemm 2 x1\ncapture 1 x1\n  a 1 x1\n    gemm 1 x1\n");
}

TEST(Graphs, DestroyedGraphsStillExplainTheirReplays) {
  ProfileBuilder p;
  capture_two_layers(p);
  p.thread().phase("decode").launch_graph(1, kExec).destroy_exec(kExec).destroy_graph(kTemplate);
  p.flush();
  p.kernel(1, "gemm", 1, of_node(0));
  EXPECT_EQ(model_text(read_back(p), "decode"), "capture 1\n  a 1\n    gemm 1\n");
}

// ---- updates

// Two layers of another name in a second graph, `new_a` and `new_b`.
void capture_new_layers(ProfileBuilder& p, uint32_t graph, std::string_view second_kernel = "silu") {
  p.thread().graph(graph).push("new_a").node(graph, 0, "gemm").pop().push("new_b").node(graph, 1, second_kernel).pop();
}

TEST(GraphUpdates, AllNodesBelongToTheNewGraph) {
  ProfileBuilder p;
  capture_two_layers(p);
  capture_new_layers(p, 3);
  p.thread().update_node(kExec, 1, node_id(3, 1)).update(kExec, 3).phase("decode").launch_graph(1, kExec);
  p.kernel(1, "gemm", 1, of_node(0));  // found equal, so not told
  p.kernel(1, "silu", 2, of_node(1));
  EXPECT_EQ(model_text(read_back(p), "decode"), "new_a 1\n  gemm 1\nnew_b 2\n  silu 2\n");
}

TEST(GraphUpdates, ReplaysBeforeAnUpdateKeepTheOldLayers) {
  ProfileBuilder p;
  capture_two_layers(p);
  p.thread().phase("decode").launch_graph(1, kExec);
  capture_new_layers(p, 3);
  p.thread().update(kExec, 3).launch_graph(2, kExec);
  p.flush();
  p.kernel(1, "gemm", 1, of_node(0));
  p.kernel(2, "gemm", 2, of_node(0));
  EXPECT_EQ(summary_text(read_back(p), "decode"),
            "capture 1 x1\n  a 1 x1\n    gemm 1 x1\nnew_a 2 x2\n  gemm 2 x1\nnew_b 0 x1\n");
}

TEST(GraphUpdates, NodesThatCanNotBePairedAreStale) {
  ProfileBuilder p;
  capture_two_layers(p);
  p.thread().graph(3).push("new").node(3, 0, "gemm").node(3, 1, "silu").node(3, 2, "third").pop();
  p.thread().update_node(kExec, 0, node_id(3, 0)).update(kExec, 3).phase("decode").launch_graph(1, kExec);
  p.kernel(1, "gemm", 1, of_node(0));
  p.kernel(1, "silu", 2, of_node(1));
  ReadBack result = read_back(p);
  EXPECT_EQ(result.placed(Placement::kStaleNode), 1);
  EXPECT_EQ(summary_text(result, "decode"), "(stale node) 2 x1\n  silu 2 x1\nnew 1 x1\n  gemm 1 x1\n");
}

TEST(GraphUpdates, KernelsInAnotherOrderAreStale) {
  ProfileBuilder p;
  capture_two_layers(p);
  capture_new_layers(p, 3, "other");
  p.thread().update(kExec, 3).phase("decode").launch_graph(1, kExec);
  p.kernel(1, "silu", 2, of_node(1));
  EXPECT_EQ(read_back(p).placed(Placement::kStaleNode), 1);
}

TEST(GraphUpdates, UpdateFromAnUnknownGraphIsStale) {
  ProfileBuilder p;
  capture_two_layers(p);
  p.thread().update_node(kExec, 0, node_id(50, 0)).update(kExec, 50).phase("decode").launch_graph(1, kExec);
  p.kernel(1, "gemm", 1, of_node(0));
  EXPECT_EQ(read_back(p).placed(Placement::kStaleNode), 1);
}

TEST(GraphUpdates, NodeWithNewParametersBelongsToTheCallsOpenThen) {
  ProfileBuilder p;
  capture_two_layers(p);
  p.thread().push("setter").set_params(node_id(kTemplate, 0), kExec).pop().phase("decode").launch_graph(1, kExec);
  p.kernel(1, "another", 1, of_node(0));  // its kernel may be another one
  EXPECT_EQ(model_text(read_back(p), "decode"), "setter 1\n  another 1\n");
}

TEST(GraphUpdates, NewParametersOfTheTemplateCountForLaterInstantiations) {
  ProfileBuilder p;
  capture_two_layers(p);
  p.thread().push("setter").set_params(node_id(kTemplate, 0)).pop().instantiate(6, kTemplate);
  p.thread().phase("decode").launch_graph(1, kExec).launch_graph(2, 6);
  p.kernel(1, "gemm", 1, of_node(0));
  p.kernel(2, "gemm", 2, of_node(0, 6));
  EXPECT_EQ(summary_text(read_back(p), "decode"), "capture 1 x1\n  a 1 x1\n    gemm 1 x1\nsetter 2 x1\n  gemm 2 x1\n");
}

TEST(GraphUpdates, TooManyVersionsMakeTheOldestStale) {
  constexpr uint32_t kUpdates = 200;
  ProfileBuilder p;
  capture_two_layers(p);
  p.thread().phase("decode").launch_graph(1, kExec);
  for (uint32_t i = 0; i < kUpdates; ++i) {
    p.thread().push("set" + std::to_string(i)).set_params(node_id(kTemplate, 0), kExec).pop();
  }
  p.thread().launch_graph(2, kExec);
  p.flush();
  p.kernel(1, "gemm", 1, of_node(0));
  p.kernel(2, "gemm", 2, of_node(0));
  ReadBack result = read_back(p);
  EXPECT_EQ(result.placed(Placement::kStaleNode), 1);
  EXPECT_EQ(result.placed(Placement::kLayer), 1);
}

// ---- events of several threads

TEST(GraphEvents, AreAppliedInTheirOrderOverAllThreads) {
  ProfileBuilder p;
  p.thread(1).push("a").graph(kTemplate).node(kTemplate, 0, "gemm").pop();
  p.thread(0).instantiate(kExec, kTemplate).phase("decode").launch_graph(1, kExec);  // read before the capture
  p.kernel(1, "gemm", 1, of_node(0));
  EXPECT_EQ(model_text(read_back(p), "decode"), "a 1\n  gemm 1\n");
}

TEST(GraphEvents, ReplayWaitsForTheGraphOfAnotherThread) {
  constexpr uint32_t kEvents = 5;
  ProfileBuilder p;
  p.graph_records = kEvents;
  p.thread(0).phase("decode").launch_graph(1, kExec);
  p.kernel(1, "gemm", 1, of_node(0));
  p.flush();
  p.graph_records = 0;
  p.thread(1).push("a").graph(kTemplate).node(kTemplate, 0, "gemm").pop().instantiate(kExec, kTemplate);
  EXPECT_EQ(p.graph_records, kEvents);
  EXPECT_EQ(model_text(read_back(p), "decode"), "a 1\n  gemm 1\n");
}

TEST(GraphEvents, MissingOnesHoldUpNothingForEver) {
  ProfileBuilder p;
  p.graph_records = 5;  // what came before is lost
  capture_two_layers(p);
  p.thread().phase("decode").launch_graph(1, kExec);
  p.kernel(1, "gemm", 1, of_node(0));
  EXPECT_EQ(model_text(read_back(p), "decode"), "capture 1\n  a 1\n    gemm 1\n");
}

TEST(GraphEvents, ReplaysWaitForMissingOnesOnlySoLong) {
  constexpr uint32_t kMoreThanWait = (1u << 18) + 1;
  ProfileBuilder p;
  capture_two_layers(p);
  p.graph_records += 10;  // of a thread whose piece is lost
  p.thread().phase("decode").launch_graph(1, kExec);
  for (uint32_t i = 0; i < kMoreThanWait; ++i) {
    p.kernel(1, "gemm", 0.001, of_node(0));
    if (i % 100'000 == 0) p.flush();
  }
  TemporaryFile file(p.bytes());
  LayerTree tree({});
  uint64_t placed = 0, placed_at_the_trailer = 0;
  ProfileObserver observer;
  observer.activity = [&](auto&&...) { ++placed; };
  observer.record = [&](const RecordView& record, auto&&...) {
    if (record.header().kind == RecordKind::kTrailer) placed_at_the_trailer = placed;
  };
  read_profile(file.path(), tree, std::nullopt, observer);
  EXPECT_EQ(placed_at_the_trailer, kMoreThanWait);
  EXPECT_EQ(placed, kMoreThanWait);
}

// ---- conditional bodies

TEST(Conditionals, KernelWithoutCorrelationIsOfTheLaunchAroundIt) {
  constexpr uint64_t kBegin = 1'700'000'000'000'000'000;
  ProfileBuilder p;
  capture_two_layers(p);
  p.thread().phase("prefill").launch_graph(1, kExec).end_phase().phase("decode").launch_graph(2, kExec).end_phase();
  p.kernel(1, "gemm", 1, {.node = node_id(kExec, 0), .start = kBegin});
  p.kernel(0, "silu", 2, {.node = node_id(kExec, 1), .start = kBegin + 10'000});
  p.kernel(2, "gemm", 4, {.node = node_id(kExec, 0), .start = kBegin + 20'000});
  p.kernel(0, "silu", 8, {.node = node_id(kExec, 1), .start = kBegin + 30'000});
  ReadBack result = read_back(p);
  EXPECT_EQ(model_text(result, "prefill"), "capture 3\n  a 1\n    gemm 1\n  b 2\n    silu 2\n");
  EXPECT_EQ(model_text(result, "decode"), "capture 12\n  a 4\n    gemm 4\n  b 8\n    silu 8\n");
}

TEST(Conditionals, WithoutAKernelAroundTheLastLaunchCounts) {
  ProfileBuilder p;
  capture_two_layers(p);
  p.thread().phase("decode").launch_graph(1, kExec).end_phase();
  p.kernel(0, "silu", 2, of_node(1));
  EXPECT_EQ(model_text(read_back(p), "decode"), "capture 2\n  b 2\n    silu 2\n");
}

TEST(Conditionals, WithoutAnyLaunchTheyAreTheDrivers) {
  ProfileBuilder p;
  p.kernel(0, "silu", 2, of_node(1));
  EXPECT_EQ(read_back(p).placed(Placement::kDriver), 1);
}

}  // namespace
}  // namespace lamina
