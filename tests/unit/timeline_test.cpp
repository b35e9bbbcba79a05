#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "drawn_timeline.h"

namespace lamina {
namespace {

using namespace format;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

constexpr char kStream[] = "stream 7";
constexpr char kSecondLane[] = "stream 7 (overlapping 1)";
constexpr char kHost[] = "thread";

// The builder's host events are 1000 ns from each other, the first at 1'001'000; kernels stand where a test puts them.
ProfileBuilder::Ran at(uint64_t ns, uint64_t node = 0) { return {.node = node, .start = kTimelineStart + ns}; }

// ---- lanes

TEST(Lanes, NestedRangesShareOne) {
  NestingLanes<int> lanes;
  lanes.add(1, 0);
  lanes.add(2, 5);
  EXPECT_EQ(lanes.close(1), 0u);
  lanes.add(3, 9);
  EXPECT_EQ(lanes.close(1), 0u);
  EXPECT_EQ(lanes.close(0), 0u);
}

TEST(Lanes, OverlappingRangesDoNot) {
  NestingLanes<int> lanes;
  for (int i = 0; i < 3; ++i) lanes.add(i, 0);
  EXPECT_EQ(lanes.close(0), 0u);
  EXPECT_EQ(lanes.close(0), 1u);
  lanes.add(3, 0);  // in the last one
  EXPECT_EQ(lanes.close(1), 0u);
  EXPECT_EQ(lanes.close(0), 2u);
}

TEST(Lanes, ThereAreSoMany) {
  NestingLanes<int> ranges;
  for (size_t i = 0; i <= kMaxLanes; ++i) ranges.add(0, i);
  for (size_t i = 0; i < kMaxLanes; ++i) EXPECT_EQ(ranges.close(0), i);
  EXPECT_EQ(ranges.close(0), std::nullopt);
  DisjointLanes kernels;
  for (size_t i = 0; i < kMaxLanes; ++i) EXPECT_EQ(kernels.take(i, 1000), i);
  EXPECT_EQ(kernels.take(999, 1000), std::nullopt);
  EXPECT_EQ(kernels.take(1000, 1001), 0u);
}

// ---- layers over kernels

TEST(Timeline, LayersGoFromTheirFirstKernelToTheirLast) {
  ProfileBuilder p;
  p.thread().push("model").push("attn").launch(1).launch(2).pop().push("mlp").launch(3).pop().pop().launch(4);
  p.kernel(1, "qkv", 10, at(10'000));
  p.kernel(2, "out", 10, at(25'000));
  p.kernel(3, "gate", 10, at(40'000));
  p.kernel(4, "last", 10, at(60'000));
  EXPECT_EQ(draw(p).text(kStream),
            "10000-50000 model\n"
            "  10000-35000 attn\n"
            "    10000-20000 qkv\n"
            "    25000-35000 out\n"
            "  40000-50000 mlp\n"
            "    40000-50000 gate\n"
            "60000-70000 last\n");
}

TEST(Timeline, CallsOfOneNameAreApart) {
  ProfileBuilder p;
  for (uint32_t i = 1; i <= 2; ++i) p.thread().push("layer").launch(i).pop();
  p.kernel(1, "k", 10, at(0));
  p.kernel(2, "k", 10, at(10'000));
  EXPECT_EQ(draw(p).text(kStream), "0-10000 layer\n  0-10000 k\n10000-20000 layer\n  10000-20000 k\n");
}

TEST(Timeline, ALayerIsCutWhereAnothersKernelLies) {
  ProfileBuilder p;
  p.thread(1).push("a").launch(1).launch(3).pop();
  p.thread(2).push("b").launch(2).pop();
  p.kernel(1, "k", 10, at(0));
  p.kernel(2, "other", 10, at(10'000));
  p.kernel(3, "k", 10, at(20'000));
  EXPECT_EQ(draw(p).text(kStream),
            "0-10000 a\n  0-10000 k\n"
            "10000-20000 b\n  10000-20000 other\n"
            "20000-30000 a\n  20000-30000 k\n");
}

TEST(Timeline, StreamsHaveTheirOwnLayers) {
  ProfileBuilder p;
  p.thread().push("a").launch(1).launch(2).pop();
  p.kernel(1, "k", 10, at(0));
  auto other = at(5'000);
  other.stream = 8;
  p.kernel(2, "k", 10, other);
  Drawn drawn = draw(p);
  EXPECT_EQ(drawn.text(kStream), "0-10000 a\n  0-10000 k\n");
  EXPECT_EQ(drawn.text("stream 8"), "5000-15000 a\n  5000-15000 k\n");
}

TEST(Timeline, KernelsOfTheFileMayBeInAnyOrder) {
  ProfileBuilder p;
  p.thread().push("a").launch(1).launch(2).pop();
  p.kernel(2, "second", 10, at(20'000));
  p.kernel(1, "first", 10, at(0));
  EXPECT_EQ(draw(p).text(kStream), "0-30000 a\n  0-10000 first\n  20000-30000 second\n");
}

// Programmatic dependent launch: the next kernel begins before this one has ended.
TEST(Timeline, AKernelThatOverlapsHasASecondLane) {
  ProfileBuilder p;
  p.thread().push("a").launch(1).pop().push("b").launch(2).launch(3).pop();
  p.kernel(1, "k1", 10, at(0));
  p.kernel(2, "k2", 10, at(8'000));
  p.kernel(3, "k3", 10, at(20'000));
  Drawn drawn = draw(p);
  EXPECT_EQ(drawn.text(kStream), "0-10000 a\n  0-10000 k1\n10000-30000 b\n  20000-30000 k3\n");
  EXPECT_EQ(drawn.text(kSecondLane), "8000-18000 k2\n");
}

TEST(Timeline, AKernelInsideOfAnotherLeavesItsLayerAlone) {
  ProfileBuilder p;
  p.thread().push("a").launch(1).launch(3).pop().push("b").launch(2).pop();
  p.kernel(1, "long", 100, at(0));
  p.kernel(2, "short", 10, at(50'000));
  p.kernel(3, "next", 10, at(100'000));
  Drawn drawn = draw(p);
  EXPECT_EQ(drawn.text(kStream), "0-110000 a\n  0-100000 long\n  100000-110000 next\n");
  EXPECT_EQ(drawn.text(kSecondLane), "50000-60000 short\n");
}

TEST(Timeline, AMemoryOperationMakesWayForKernels) {
  ProfileBuilder p;
  p.thread().push("a").launch(1, LaunchKind::kMemset).launch(2).pop();
  p.kernel(9, "early", 1, at(0));
  p.memset_device(1, 100);  // at 1'000
  p.kernel(2, "k", 10, at(50'000));
  Drawn drawn = draw(p);
  EXPECT_THAT(drawn.text(kStream), HasSubstr("  50000-60000 k\n"));
  EXPECT_EQ(drawn.text(kSecondLane), "1000-101000 Memset (Device)\n");
}

TEST(Timeline, HundredsOfLevels) {
  ProfileBuilder p;
  for (int i = 0; i < 600; ++i) p.thread().push("l" + std::to_string(i));
  p.thread().launch(1);
  p.kernel(1, "k", 10, at(0));
  EXPECT_THAT(draw(p).tracks[kStream], SizeIs(LayerTree::kMaxDepth + 1));
}

TEST(Timeline, WhatHasNoTimeIsCounted) {
  ProfileBuilder p;
  p.thread().launch(1);
  p.kernel(1, "k", 0, {.timed = false});
  Drawn drawn = draw(p);
  EXPECT_EQ(drawn.untimed, 1);
  EXPECT_TRUE(drawn.tracks.empty());
}

TEST(Timeline, MoreAtOnceThanLanesIsCounted) {
  ProfileBuilder p;
  for (uint32_t i = 0; i < kMaxLanes + 3; ++i) {
    p.thread().launch(i + 1);
    p.kernel(i + 1, "k", 10, at(i));
  }
  EXPECT_EQ(draw(p).left_out, 3);
}

// ---- graphs

void build_replays(ProfileBuilder& p) {
  p.thread().graph(1).push("model").push("l0").node(1, 0, "k0").pop().push("l1").node(1, 1, "k1").pop().pop().instantiate(2, 1);
  p.thread().push("step");
  for (uint32_t replay = 0; replay < 2; ++replay) {
    p.thread().launch_graph(10 + replay, 2);
    for (uint32_t node = 0; node < 2; ++node) p.kernel(10 + replay, node ? "k1" : "k0", 10, at(replay * 100'000 + node * 20'000, node_id(2, node)));
  }
  p.thread().pop();
}

TEST(Timeline, EachReplayHasItsLayers) {
  ProfileBuilder p;
  build_replays(p);
  EXPECT_EQ(draw(p).text(kStream),
            "0-130000 step\n"
            "  0-30000 model\n"
            "    0-10000 l0\n"
            "      0-10000 k0\n"
            "    20000-30000 l1\n"
            "      20000-30000 k1\n"
            "  100000-130000 model\n"
            "    100000-110000 l0\n"
            "      100000-110000 k0\n"
            "    120000-130000 l1\n"
            "      120000-130000 k1\n");
}

TEST(Timeline, AKernelTellsWhatIsKnownOfIt) {
  ProfileBuilder p;
  build_replays(p);
  auto args = draw(p).slice(kStream, "k1").args;
  EXPECT_EQ(args["layer"], "step / model / l1");
  EXPECT_EQ(args["graph node"], "2:1");
  EXPECT_EQ(args["correlation"], "10");
  EXPECT_EQ(args["grid"], "0,0,0");
}

TEST(Timeline, SizesOfKernels) {
  ProfileBuilder p;
  p.thread().launch(1);
  KernelSiteRecord site{};
  site.name = p.string("k");
  site.grid[0] = 132, site.grid[1] = 2, site.grid[2] = 1;
  site.block[0] = 128, site.block[1] = 1, site.block[2] = 1;
  site.registers_per_thread = 40, site.static_shared_memory = 16, site.dynamic_shared_memory = 1024;
  std::vector<char> records;
  append_record(records, RecordKind::kKernelSite, 0, 1, site);
  append_record(records, RecordKind::kActivity, 0, 1, ActivityRecord{{}, 1, 500, 0, 0});
  p.flush();
  ChunkHeader header{};
  header.kind = ChunkKind::kActivity;
  header.base_time = kTimelineStart;
  p.add_bytes(chunk_bytes(header, records));
  auto args = draw(p).slice("stream 0", "k").args;
  EXPECT_EQ(args["grid"], "132,2,1");
  EXPECT_EQ(args["block"], "128,1,1");
  EXPECT_EQ(args["registers"], "40");
  EXPECT_EQ(args["static shared memory"], "16");
  EXPECT_EQ(args["dynamic shared memory"], "1024");
  EXPECT_EQ(args["layer"], "(no module)");
}

// ---- the host

TEST(Timeline, RangesStandAtTheirHostTimes) {
  ProfileBuilder p;
  both_clocks(p);
  p.thread().push("model").push("mlp").pop().pop().push("next").pop();
  EXPECT_EQ(draw(p).text(kHost), "1001000-1004000 model\n  1002000-1003000 mlp\n1005000-1006000 next\n");
}

TEST(Timeline, WithoutAClockPairThereAreNoHostTimes) {
  ProfileBuilder p;
  p.thread().push("model").launch(1).pop();
  p.kernel(1, "k", 10, at(5'000'000));
  Drawn drawn = draw(p);
  EXPECT_FALSE(drawn.tracks.contains(kHost));
  EXPECT_TRUE(drawn.arrows.empty());
  EXPECT_EQ(drawn.text(kStream), "5000000-5010000 model\n  5000000-5010000 k\n");
}

TEST(Timeline, ClocksThatWereSetBackDoNotTurnRangesInsideOut) {
  ProfileBuilder p;
  both_clocks(p);
  p.define(RecordKind::kClockPair, 0, 0, ClockPairRecord{{}, 1'001'500, kTimelineStart + 500'000});
  p.thread().push("model").push("mlp").pop().pop();
  EXPECT_EQ(draw(p).text(kHost), "1001000-1001003 model\n  1001001-1001002 mlp\n");
}

TEST(Timeline, OverlappingRangesHaveASecondTrack) {
  ProfileBuilder p;
  both_clocks(p);
  p.thread().push("a", "one").push("b", "two").pop_at(0).pop();
  Drawn drawn = draw(p);
  EXPECT_EQ(drawn.text(kHost), "1001000-1003000 a\n");
  EXPECT_EQ(drawn.text("thread (overlapping ranges 1)"), "1002000-1004000 b\n");
  EXPECT_EQ(drawn.slice(kHost, "a").args.at("domain"), "one");
}

TEST(Timeline, RangesThatNeverEndDoSoWithTheProcess) {
  ProfileBuilder p;
  both_clocks(p);
  p.thread().push("open").push("inner").pop();
  EXPECT_EQ(draw(p).text(kHost), "1001000-1003001 open\n  1002000-1003000 inner\n");
}

TEST(Timeline, AfterALossTheOpenRangesAreKnownAgain) {
  ProfileBuilder p;
  both_clocks(p);
  p.thread().push("outer").push("lost");
  p.flush();
  p.thread().pop().push("also lost");
  p.thread().lose();
  p.thread().state().pop().pop();
  Drawn drawn = draw(p);
  EXPECT_EQ(drawn.text(kHost), "1001000-1006000 outer\n  1002000-1002001 lost\n  1002002-1005000 also lost\n");
  EXPECT_THAT(drawn.slice(kHost, "also lost").args.at("begin"), HasSubstr("lost"));
}

TEST(Timeline, MarksAreMoments) {
  ProfileBuilder p;
  both_clocks(p);
  p.thread().push("a").mark("here").pop();
  Drawn drawn = draw(p);
  ASSERT_THAT(drawn.marks[kHost], SizeIs(1));
  EXPECT_EQ(drawn.marks[kHost][0].begin, 1'002'000);
  EXPECT_EQ(drawn.marks[kHost][0].name, "here");
}

// ---- arrows

TEST(Timeline, AnArrowBeginsBetweenTheEventsAroundTheLaunch) {
  ProfileBuilder p;
  both_clocks(p);
  p.thread().push("a").launch(1).launch(2).pop();  // from 1'001'000 to 1'002'000
  p.kernel(1, "k", 10, at(2'000'000));
  p.kernel(2, "k", 10, at(2'020'000));
  Drawn drawn = draw(p);
  ASSERT_THAT(drawn.arrows, SizeIs(2));
  EXPECT_NEAR(static_cast<double>(drawn.arrows[0].begin), 1'001'333, 10);
  EXPECT_NEAR(static_cast<double>(drawn.arrows[1].begin), 1'001'666, 10);
  EXPECT_EQ(drawn.arrows[1].end, 2'020'000);
  EXPECT_EQ(drawn.arrows[1].from, kHost);
  EXPECT_EQ(drawn.arrows[1].to, kStream);
  EXPECT_EQ(drawn.slice(kStream, "k").args.at("launched"), "between 1001.000 and 1002.000 us");
  EXPECT_EQ(drawn.marks[kHost][0].name, "launch of k");
}

TEST(Timeline, AnArrowNeverGoesBack) {
  ProfileBuilder p;
  both_clocks(p);
  p.thread().push("a").launch(1).launch(2).pop();
  p.kernel(1, "k", 10, at(1'001'100));  // before the middle of what is known of the launch
  p.kernel(2, "k", 10, at(1'000'000));  // before all of it
  Drawn drawn = draw(p);
  ASSERT_THAT(drawn.arrows, SizeIs(1));
  EXPECT_EQ(drawn.arrows[0].begin, 1'001'050);
}

TEST(Timeline, AReplayHasOneArrow) {
  ProfileBuilder p;
  both_clocks(p);
  p.thread().graph(1).node(1, 0, "k0").node(1, 1, "k1").instantiate(2, 1).push("step").launch_graph(5, 2).pop();
  p.kernel(5, "k1", 10, at(2'020'000, node_id(2, 1)));
  p.kernel(5, "k0", 10, at(2'000'000, node_id(2, 0)));
  Drawn drawn = draw(p);
  ASSERT_THAT(drawn.arrows, SizeIs(1));
  EXPECT_EQ(drawn.arrows[0].end, 2'000'000);
  EXPECT_EQ(drawn.marks[kHost][0].name, "launch of a graph");
}

TEST(Timeline, AnArrowBeginsOnTheLaneOfItsRange) {
  ProfileBuilder p;
  both_clocks(p);
  p.thread().push("a").push("b").launch(1).pop_at(0).pop();
  p.kernel(1, "k", 10, at(2'000'000));
  Drawn drawn = draw(p);
  ASSERT_THAT(drawn.arrows, SizeIs(1));
  EXPECT_EQ(drawn.arrows[0].from, "thread (overlapping ranges 1)");
}

TEST(Timeline, CapturedAndFailedLaunchesHaveNone) {
  ProfileBuilder p;
  both_clocks(p);
  p.thread().push("a").launch(1, LaunchKind::kKernel, kLaunchCaptured).launch(2, LaunchKind::kKernel, kLaunchFailed).pop();
  p.kernel(1, "k", 10, at(2'000'000));
  EXPECT_TRUE(draw(p).arrows.empty());
}

// ---- phases

void build_phases(ProfileBuilder& p) {
  both_clocks(p);
  uint32_t correlation = 0;
  for (std::string_view phase : {"prefill", "decode", "decode"}) {
    p.thread().phase(phase).push("model").launch(++correlation).pop().end_phase();
    p.kernel(correlation, "k", 10, at(2'000'000 + correlation * 100'000));
  }
}

TEST(Timeline, StepsAreATrackAndEncloseTheirKernels) {
  ProfileBuilder p;
  build_phases(p);
  Drawn drawn = draw(p);
  EXPECT_EQ(drawn.text("phases"), "1002000-1005000 prefill\n1008000-1011000 decode_1\n1014000-1017000 decode_2\n");
  EXPECT_EQ(drawn.text(kStream),
            "2100000-2110000 prefill\n  2100000-2110000 model\n    2100000-2110000 k\n"
            "2200000-2210000 decode_1\n  2200000-2210000 model\n    2200000-2210000 k\n"
            "2300000-2310000 decode_2\n  2300000-2310000 model\n    2300000-2310000 k\n");
}

TEST(Timeline, OfOnePhaseOnlyThatIsShown) {
  for (const char* phase : {"decode_2", "prefill", "decode"}) {
    ProfileBuilder p;
    build_phases(p);
    Drawn drawn = draw(p, phase);
    size_t steps = phase == std::string_view("decode") ? 2 : 1;
    EXPECT_TRUE(drawn.found_phase);
    EXPECT_THAT(drawn.tracks["phases"], SizeIs(steps)) << phase;
    EXPECT_THAT(drawn.tracks[kStream], SizeIs(3 * steps)) << phase;
    EXPECT_THAT(drawn.tracks[kHost], SizeIs(2 * steps)) << phase;
    EXPECT_THAT(drawn.arrows, SizeIs(steps)) << phase;
  }
}

TEST(Timeline, APhaseThatIsNot) {
  for (const char* phase : {"decode_3", "decoder", "all"}) {
    ProfileBuilder p;
    build_phases(p);
    Drawn drawn = draw(p, phase);
    EXPECT_FALSE(drawn.found_phase) << phase;
    EXPECT_TRUE(drawn.tracks.empty()) << phase;
  }
}

TEST(Timeline, RangesAroundAStepAreShownWithIt) {
  ProfileBuilder p;
  both_clocks(p);
  p.thread().push("serve").phase("warmup").push("w").pop().end_phase().phase("decode").push("d").pop().end_phase().pop();
  Drawn drawn = draw(p, "decode");
  EXPECT_EQ(drawn.text(kHost), "1001000-1014000 serve\n  1008000-1013000 phase:decode\n    1010000-1011000 d\n");
}

TEST(Timeline, StepsOfThreadsThatOverlapHaveTheirOwnTracks) {
  ProfileBuilder p;
  both_clocks(p);
  p.thread(1).phase("a");
  p.thread(2).phase("b");
  p.thread(1).end_phase();
  p.thread(2).end_phase();
  Drawn drawn = draw(p);
  EXPECT_EQ(drawn.text("phases"), "1002000-1005000 a\n");
  EXPECT_EQ(drawn.text("phases (overlapping 1)"), "1004000-1007000 b\n");
}

TEST(Timeline, AnEmptyProfile) {
  ProfileBuilder p;
  Drawn drawn = draw(p);
  EXPECT_TRUE(drawn.tracks.empty());
  EXPECT_THAT(drawn.processes, ElementsAre("process"));
}

}  // namespace
}  // namespace lamina
