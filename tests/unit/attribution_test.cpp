#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "read_back.h"

namespace lamina {
namespace {

using namespace format;
using testing::ElementsAre;

TEST(Attribution, KernelStandsUnderTheOpenCalls) {
  ProfileBuilder p;
  p.thread().push("mlp").push("gate").launch(1).pop().launch(2).pop().launch(3);
  p.kernel(1, "gemm", 2);
  p.kernel(2, "silu", 3);
  p.kernel(3, "copy", 4);
  ReadBack result = read_back(p);
  EXPECT_EQ(model_text(result, "all"),
            "mlp 5\n"
            "  gate 2\n"
            "    gemm 2\n"
            "  silu 3\n"
            "(no module) 4\n"
            "  copy 4\n");
  EXPECT_EQ(result.placed(Placement::kLayer), 2);
  EXPECT_EQ(result.placed(Placement::kNoRange), 1);
  EXPECT_EQ(result.account().launches[0], 3);
}

// Triton's launcher has a range with the arguments; which function called it is known by the call stack.
TEST(Attribution, ALaunchersTraceGoesOnInPython) {
  constexpr std::string_view kLibrary = "/x/__triton_launcher.cpython-312-x86_64-linux-gnu.so";
  ProfileBuilder p;
  p.define(RecordKind::kCode, 0, 1, CodeRecord{{}, p.string(kLibrary), 0, p.string("launch"), 0, 0, CodeLanguage::kNative, 0});
  p.define(RecordKind::kCode, 0, 2, CodeRecord{{}, 0, 0, p.string("Net.forward"), p.string("/x/net.py"), 7, CodeLanguage::kPython, 0});
  p.define(RecordKind::kStack, 0, 1, StackRecord{{}, 0, 2, 0, 0});
  p.define(RecordKind::kStack, 0, 2, StackRecord{{}, 1, 1, 0, 0});
  auto launch = [&](uint32_t correlation, uint32_t stack) {
    p.thread().push("Net @ Net", "lamina").push("__triton_launcher.launch(int) <- __triton_launcher.cpython-312-x86_64-linux-gnu.so", "lamina");
    p.thread().record(RecordKind::kCallStack, 0, stack, RecordHeader{}).launch(correlation).pop().pop();
    p.kernel(correlation, "k", 1);
  };
  for (uint32_t i = 1; i <= 2; ++i) launch(i, 2);
  launch(3, 0);
  constexpr char kTrace[] = "launch(int) <- __triton_launcher.so";
  std::string with_python = std::string("Net 1\n  k 1 [") + kTrace + " <- Net.forward (net.py:7)]\n";
  EXPECT_EQ(model_text(read_back(p), "all"), with_python + with_python + "Net 1\n  k 1 [" + kTrace + "]\n");
}

TEST(Attribution, RowWithoutModuleIsTheLast) {
  ProfileBuilder p;
  p.thread().launch(1).push("mlp").launch(2).pop();
  p.kernel(1, "early", 1);
  p.kernel(2, "gemm", 1);
  EXPECT_EQ(model_text(read_back(p), "all"), "mlp 1\n  gemm 1\n(no module) 1\n  early 1\n");
}

TEST(Attribution, ActivityMayComeBeforeItsLaunchRecord) {
  ProfileBuilder p;
  p.kernel(1, "gemm", 2);
  p.flush();
  p.thread().push("mlp").launch(1).pop();
  EXPECT_EQ(model_text(read_back(p), "all"), "mlp 2\n  gemm 2\n");
}

TEST(Attribution, LaunchAndActivityMayBeFarApart) {
  constexpr uint32_t kBetween = 50'000;
  ProfileBuilder p;
  p.thread().push("mlp").launch(1).pop();
  for (uint32_t i = 0; i < kBetween; ++i) p.thread().launch(100 + i);
  p.flush();
  for (uint32_t i = 0; i < kBetween; ++i) p.kernel(100 + i, "other", 1);
  p.flush();
  p.kernel(1, "gemm", 2);
  ReadBack result = read_back(p);
  EXPECT_EQ(summary_text(result, "all"), "mlp 2 x1\n  gemm 2 x1\n(no module) 50000 x1\n  other 50000 x50000\n");
  EXPECT_EQ(result.account().without_activity, 0);
}

TEST(Attribution, CorrelationIdsWrap) {
  ProfileBuilder p;
  p.thread().push("a").launch(0xffffffff).pop().push("b").launch(0).pop().push("c").launch(1).pop();
  p.kernel(0xffffffff, "k", 1);
  p.kernel(0, "k", 2);
  p.kernel(1, "k", 3);
  EXPECT_EQ(model_text(read_back(p), "all"), "a 1\n  k 1\nb 2\n  k 2\nc 3\n  k 3\n");
}

// After 2^32 launches an id comes again. What runs under it then is not the old launch's.
TEST(Attribution, OldLaunchDoesNotTakeTheActivityOfItsIdsNextUse) {
  constexpr uint32_t kMoreThanAreKept = (4u << 20) + 10;
  ProfileBuilder p;
  p.thread().push("old").launch(1, LaunchKind::kMemcpy).pop();
  p.memcpy_htod(1, 1);
  for (uint32_t i = 0; i < kMoreThanAreKept; ++i) {
    p.thread().launch(100 + i, LaunchKind::kMemset);
    if (i % 100'000 == 0) p.flush();
  }
  p.flush();
  p.memcpy_htod(1, 10);
  p.flush();
  p.thread().push("new").launch(1, LaunchKind::kMemcpy).pop();
  EXPECT_EQ(model_text(read_back(p), "all"),
            "old 1\n  Memcpy HtoD (Pinned -> Device) 1\nnew 10\n  Memcpy HtoD (Pinned -> Device) 10\n");
}

TEST(Attribution, LaunchesThatRanNothingAreCountedApart) {
  ProfileBuilder p;
  p.thread().push("mlp").launch(1, LaunchKind::kKernel, kLaunchFailed);
  p.thread().launch(2, LaunchKind::kKernel, kLaunchCaptured).launch(3, LaunchKind::kKernel, kLaunchNotCollected);
  p.thread().launch(4).launch(5).pop();
  p.kernel(5, "gemm", 1);
  ReadBack result = read_back(p);
  EXPECT_EQ(result.account().failed, 1);
  EXPECT_EQ(result.account().captured, 1);
  EXPECT_EQ(result.account().not_collected, 1);
  EXPECT_EQ(result.account().launches[0], 2);
  EXPECT_EQ(result.account().without_activity, 1);
  EXPECT_EQ(model_text(result, "all"), "mlp 1\n  gemm 1\n");
}

TEST(Attribution, ActivityWithoutLaunchIsTheDrivers) {
  ProfileBuilder p;
  p.thread().push("mlp").launch(1).pop();
  p.kernel(1, "gemm", 1);
  p.kernel(99, "internal", 5);
  ReadBack result = read_back(p);
  EXPECT_EQ(model_text(result, "all"), "mlp 1\n  gemm 1\n(driver) 5\n  internal 5\n");
  EXPECT_EQ(result.placed(Placement::kDriver), 1);
}

TEST(Attribution, SecondKernelOfOneLaunchIsTheDrivers) {
  ProfileBuilder p;
  p.thread().push("mlp").launch(1).pop();
  p.kernel(1, "gemm", 1);
  p.kernel(1, "again", 1);
  EXPECT_EQ(model_text(read_back(p), "all"), "mlp 1\n  gemm 1\n(driver) 1\n  again 1\n");
}

TEST(Attribution, ActivityWaitsForItsLaunchOnlySoLong) {
  constexpr uint32_t kMoreThanWait = (1u << 20) + 1;
  ProfileBuilder p;
  for (uint32_t i = 0; i < kMoreThanWait; ++i) {
    p.memcpy_htod(1, 0.001);
    if (i % 100'000 == 0) p.flush();
  }
  p.flush();
  p.thread().push("late").launch(1, LaunchKind::kMemcpy).pop();
  EXPECT_EQ(read_back(p).placed(Placement::kDriver), kMoreThanWait);
}

TEST(Attribution, MemcpyMayHaveSeveralActivities) {
  ProfileBuilder p;
  p.thread().push("embed").launch(1, LaunchKind::kMemcpy).pop().push("zero").launch(2, LaunchKind::kMemset).pop();
  p.memcpy_htod(1, 1);
  p.memcpy_htod(1, 2);
  p.memset_device(2, 4);
  ReadBack result = read_back(p);
  EXPECT_EQ(summary_text(result, "all"),
            "embed 3 x1\n  Memcpy HtoD (Pinned -> Device) 3 x2\nzero 4 x1\n  Memset (Device) 4 x1\n");
  EXPECT_THAT(result.account().activities, ElementsAre(0, 2, 1));
}

TEST(Attribution, ActivityWithoutTimeCountsZero) {
  ProfileBuilder p;
  p.thread().push("mlp").launch(1).launch(2).pop();
  p.kernel(1, "lost", 0, {.timed = false});
  p.kernel(2, "gemm", 3);
  ReadBack result = read_back(p);
  EXPECT_EQ(model_text(result, "all"), "mlp 3\n  lost 0\n  gemm 3\n");
  EXPECT_EQ(result.account().without_time, 1);
}

TEST(Attribution, TimesTooWideForARecordAreRead) {
  ProfileBuilder p;
  p.thread().push("mlp").launch(1).launch(2).launch(3).pop();
  p.kernel(1, "first", 1);
  p.kernel(2, "hour", 3.6e9, {.start = 1'700'000'100'000'000'000});
  p.kernel(3, "back", 2, {.start = 1'600'000'000'000'000'000});
  EXPECT_EQ(model_text(read_back(p), "all"), "mlp 3600000003\n  first 1\n  hour 3600000000\n  back 2\n");
}

TEST(Attribution, CallTakesItsTimeOnTheHost) {
  ProfileBuilder p;
  p.thread().push("outer").push("inner").launch(1).pop().pop();  // a microsecond an event
  p.kernel(1, "gemm", 1);
  ReadBack result = read_back(p);
  const ModelNode& outer = result.report.phases.at(0).steps.at(0).model.at(0);
  EXPECT_DOUBLE_EQ(outer.cpu_time_us, 3);
  EXPECT_DOUBLE_EQ(outer.children.at(0).cpu_time_us, 1);
  EXPECT_DOUBLE_EQ(outer.children.at(0).children.at(0).cpu_time_us, 0);
}

TEST(Attribution, OpsGoIntoTheTraceInnermostFirst) {
  ProfileBuilder p;
  p.thread().push("aten::outside(x)").push("mlp").push("aten::linear(a)").push("aten::mm(b)").launch(1).pop().pop();
  p.thread().launch(2).pop().pop();
  p.kernel(1, "gemm", 1);
  p.kernel(2, "silu", 1);
  EXPECT_EQ(model_text(read_back(p), "all"), "mlp 2\n  gemm 1 [mm(b) <- linear(a)]\n  silu 1\n");
}

TEST(Attribution, OpsWithoutALayerStillMakeATrace) {
  ProfileBuilder p;
  p.thread().push("aten::mm(b)").launch(1).pop();
  p.kernel(1, "gemm", 1);
  EXPECT_EQ(model_text(read_back(p), "all"), "(no module) 1\n  gemm 1 [mm(b)]\n");
}

TEST(Attribution, NoiseOfLibrariesIsNoLayer) {
  ProfileBuilder p;
  p.thread().push("mlp").push("ncclAllReduce", "NCCL").launch(1).pop().pop();
  p.kernel(1, "reduce", 1);
  EXPECT_EQ(model_text(read_back(p), "all"), "mlp 1\n  reduce 1\n");
}

TEST(Attribution, ModuleCalledTwiceIsTwoCallsAndOneSummaryRow) {
  ProfileBuilder p;
  for (uint32_t i = 1; i <= 2; ++i) {
    p.thread().push("mlp").launch(i).pop();
    p.kernel(i, "gemm", i);
  }
  ReadBack result = read_back(p);
  EXPECT_EQ(model_text(result, "all"), "mlp 1\n  gemm 1\nmlp 2\n  gemm 2\n");
  EXPECT_EQ(summary_text(result, "all"), "mlp 3 x2\n  gemm 3 x2\n");
}

TEST(Attribution, InstancesOfAListAreOneSummaryRow) {
  ProfileBuilder p;
  for (uint32_t i = 0; i < 3; ++i) {
    p.thread().push("layers." + std::to_string(i)).launch(i + 1).pop();
    p.kernel(i + 1, "gemm", 1);
  }
  EXPECT_EQ(summary_text(read_back(p), "all"), "layers.* 3 x3\n  gemm 3 x3\n");
}

TEST(Attribution, RowsStandInTheOrderOfTheirLaunches) {
  ProfileBuilder p;
  p.thread().push("a").launch(1).launch(2).pop().push("b").launch(3).pop();
  p.kernel(3, "third", 1);
  p.kernel(2, "second", 1);
  p.kernel(1, "first", 1);
  EXPECT_EQ(model_text(read_back(p), "all"), "a 2\n  first 1\n  second 1\nb 1\n  third 1\n");
}

TEST(Attribution, ThreadsHaveTheirOwnCalls) {
  ProfileBuilder p;
  p.thread(0).push("a").launch(1);
  p.thread(1).push("b").launch(2).pop();
  p.thread(0).launch(3).pop();
  for (uint32_t i = 1; i <= 3; ++i) p.kernel(i, "k", i);
  EXPECT_EQ(summary_text(read_back(p), "all"), "a 4 x1\n  k 4 x2\nb 2 x1\n  k 2 x1\n");
}

TEST(Attribution, OverlappingRangesMayEndInAnyOrder) {
  ProfileBuilder p;
  p.thread().push("a").push("b").push("c").launch(1).pop_at(1).launch(2).pop().launch(3).pop_at(0).launch(4);
  for (uint32_t i = 1; i <= 4; ++i) p.kernel(i, "k", i);
  EXPECT_EQ(model_text(read_back(p), "all"),
            "a 6\n"
            "  b 1\n"
            "    c 1\n"
            "      k 1\n"
            "  c 2\n"
            "    k 2\n"
            "  k 3\n"
            "(no module) 4\n"
            "  k 4\n");
}

TEST(Attribution, DeepRangesFoldIntoTheDeepestRow) {
  constexpr int kDeeper = LayerTree::kMaxDepth + 50;
  ProfileBuilder p;
  for (int i = 0; i < kDeeper; ++i) p.thread().push("d");
  p.thread().launch(1);
  p.kernel(1, "k", 1);
  ReadBack result = read_back(p);
  size_t depth = 0;
  for (auto* rows = &result.report.phases.at(0).summary; !rows->empty(); rows = &rows->at(0).children) ++depth;
  EXPECT_EQ(depth, LayerTree::kMaxDepth + 1);
}

TEST(Attribution, ContextMarksAreKept) {
  ProfileBuilder p;
  p.thread().mark("lamina:context {\"batch_size\": 4}").mark("something else");
  EXPECT_THAT(read_back(p).account().context_marks, ElementsAre("{\"batch_size\": 4}"));
}

}  // namespace
}  // namespace lamina
