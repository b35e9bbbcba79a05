// The parts of the recorder that need no CUDA: options, definitions, steps, blocks, started ranges.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "inject/collector.h"
#include "inject/definitions.h"
#include "inject/phases.h"
#include "inject/start_end_ranges.h"
#include "report/records/definitions.h"
#include "report/records/profile_file.h"

namespace lamina {
namespace {

using namespace format;
using testing::ElementsAre;
using testing::IsEmpty;

// ---- options

// Sets the recorder's variables, and only those.
class OptionsTest : public testing::Test {
 protected:
  void SetUp() override { clear(); }
  void TearDown() override { clear(); }
  static void clear() {
    for (const char* name : {"OUT", "CONTEXT", "PHASE_PATTERN", "COLLECT", "EVERY", "BUFFER_MB", "EXIT_DEADLINE"}) {
      unsetenv(("LAMINA_" + std::string(name)).c_str());
    }
    setenv("LAMINA_LOG", "off", 1);
  }
  static Options with(const char* name, const char* value) {
    setenv(name, value, 1);
    return read_options();
  }
};

TEST_F(OptionsTest, DefaultsRecordEverything) {
  Options options = read_options();
  EXPECT_TRUE(options.records_always());
  EXPECT_EQ(options.every, 1);
  EXPECT_EQ(options.buffer_bytes, 64u << 20);
  EXPECT_EQ(options.out, "");
  EXPECT_THAT(options.phase_patterns, IsEmpty());
}

TEST_F(OptionsTest, PhasePatternsAreNamesAndGlobs) {
  Options options = with("LAMINA_PHASE_PATTERN", "a=x*;;b=y=z;broken;=z;c=");
  ASSERT_EQ(options.phase_patterns.size(), 2);
  EXPECT_EQ(options.phase_patterns[0].name, "a");
  EXPECT_EQ(options.phase_patterns[0].glob, "x*");
  EXPECT_EQ(options.phase_patterns[1].glob, "y=z");
}

TEST_F(OptionsTest, CollectNamesPhasesOrTheProfiler) {
  EXPECT_THAT(with("LAMINA_COLLECT", "prefill,,decode").collect_phases, ElementsAre("prefill", "decode"));
  Options options = with("LAMINA_COLLECT", "profiler");
  EXPECT_TRUE(options.collect_profiler);
  EXPECT_THAT(options.collect_phases, IsEmpty());
  EXPECT_FALSE(options.records_always());
}

TEST_F(OptionsTest, NumbersThatAreNoneLeaveTheDefault) {
  for (const char* bad : {"", "0", "-3", "many", "5x", "nan", "inf", "1e300"}) {
    EXPECT_EQ(with("LAMINA_EVERY", bad).every, 1) << bad;
    EXPECT_EQ(with("LAMINA_BUFFER_MB", bad).buffer_bytes, 64u << 20) << bad;
    EXPECT_EQ(with("LAMINA_EXIT_DEADLINE", bad).exit_deadline_s, 10) << bad;
  }
  EXPECT_EQ(with("LAMINA_EVERY", "0.5").every, 1);
}

TEST_F(OptionsTest, NumbersAreTaken) {
  EXPECT_EQ(with("LAMINA_EVERY", "10").every, 10);
  EXPECT_EQ(with("LAMINA_BUFFER_MB", "0.5").buffer_bytes, 512u << 10);
  EXPECT_EQ(with("LAMINA_EXIT_DEADLINE", "2.5").exit_deadline_s, 2.5);
}

// ---- definitions

// Reads pending records as the report does.
ProcessDefinitions read(Definitions& definitions) {
  Chunk chunk;
  std::span<const char> records = definitions.drain();
  chunk.records.assign(records.begin(), records.end());
  ProcessDefinitions result;
  EXPECT_TRUE(chunk.for_each([&](const RecordView& record) { EXPECT_TRUE(result.add(record)); }));
  return result;
}

TEST(RecorderDefinitions, SameTextIsOneString) {
  std::vector<PhasePattern> patterns;
  Definitions definitions(patterns);
  const StringEntry* entry = definitions.string("mlp");
  EXPECT_EQ(definitions.string("mlp"), entry);
  EXPECT_NE(definitions.string("mlp", entry->id), entry);
  ProcessDefinitions result = read(definitions);
  EXPECT_EQ(result.text(entry->id), "mlp");
  EXPECT_EQ(result.string(entry->id + 1)->domain, entry->id);
  EXPECT_EQ(definitions.text(entry->id), "mlp");
}

TEST(RecorderDefinitions, ContextsAreATree) {
  std::vector<PhasePattern> patterns;
  Definitions definitions(patterns);
  uint32_t outer = definitions.context(kRootContext, *definitions.string("outer"));
  uint32_t inner = definitions.context(outer, *definitions.string("inner"));
  uint32_t phase = definitions.context(outer, *definitions.string("phase:decode"));
  EXPECT_EQ(definitions.context(outer, *definitions.string("inner")), inner);
  ProcessDefinitions result = read(definitions);
  EXPECT_EQ(result.context(inner)->parent, outer);
  EXPECT_EQ(result.text(result.context(inner)->name), "inner");
  EXPECT_EQ(result.context(inner)->kind, ContextKind::kRange);
  EXPECT_EQ(result.context(phase)->kind, ContextKind::kPhase);
  EXPECT_EQ(definitions.context(kOtherContext, *definitions.string("below")), kOtherContext);
  // Steps of one phase are one context, however long their prompts are.
  uint32_t step = definitions.context(kRootContext, *definitions.string("execute_context_1(7)_generation_0(0)"));
  EXPECT_EQ(definitions.context(kRootContext, *definitions.string("execute_context_2(9)_generation_0(0)")), step);
}

TEST(RecorderDefinitions, PhasesAndModulesAreUnique) {
  std::vector<PhasePattern> patterns = {{"mine", "step *"}};
  Definitions definitions(patterns);
  const StringEntry* decode = definitions.string("phase:decode");
  EXPECT_EQ(definitions.text(decode->phase), "decode");
  EXPECT_TRUE(decode->unique);
  EXPECT_EQ(definitions.text(definitions.string("step 1")->phase), "mine");
  EXPECT_EQ(definitions.string("step 1")->phase, definitions.string("step 2")->phase);
  EXPECT_TRUE(definitions.string("{'Module': 'a'}")->unique);
  EXPECT_FALSE(definitions.string("mlp")->unique);
  EXPECT_EQ(definitions.string("mlp")->phase, 0);
}

// What tells by itself where its kernels come from needs no call stack.
TEST(RecorderDefinitions, OpsAndExtensionCallsAreOpsButNotTritonsLauncher) {
  std::vector<PhasePattern> patterns;
  Definitions definitions(patterns);
  uint32_t hook = definitions.string("lamina")->id;
  for (const char* text : {"aten::mm(bfloat16[4, 4])", "raw_ops.scale(float32[4]) <- raw_ops.so", "f(int) <- a.cpython-312-x86_64-linux-gnu.so"}) {
    EXPECT_TRUE(definitions.string(text, hook)->is_op) << text;
    EXPECT_FALSE(definitions.string(text)->is_op) << text;
  }
  for (const char* text : {"Linear(weight=float32[4]) @ Net.up", "launch(int) <- __triton_launcher.so",
                           "__triton_launcher.launch(int) <- __triton_launcher.cpython-312-x86_64-linux-gnu.so"}) {
    EXPECT_FALSE(definitions.string(text, hook)->is_op) << text;
  }
}

TEST(RecorderDefinitions, LongTextIsCut) {
  std::vector<PhasePattern> patterns;
  Definitions definitions(patterns);
  const StringEntry* entry = definitions.string(std::string(kMaxStringBytes + 1, 'x'));
  EXPECT_EQ(entry->text.size(), kMaxStringBytes);
  EXPECT_EQ(read(definitions).text(entry->id).size(), kMaxStringBytes);
}

TEST(RecorderDefinitions, ContextsPastTheLimitAreOneAndCounted) {
  std::vector<PhasePattern> patterns;
  Definitions definitions(patterns);
  StringEntry name;
  uint32_t last = 0;
  for (uint32_t i = 1; i <= Definitions::kMaxContexts; ++i) {
    name.id = i;
    last = definitions.context(kRootContext, name);
  }
  EXPECT_EQ(last, Definitions::kMaxContexts + 1);
  for (uint32_t i = 1; i <= 3; ++i) {
    name.id = static_cast<uint32_t>(Definitions::kMaxContexts) + i;
    EXPECT_EQ(definitions.context(kRootContext, name), kOtherContext);
  }
  name.id = 1;
  EXPECT_NE(definitions.context(kRootContext, name), kOtherContext);
  ProcessDefinitions result = read(definitions);
  EXPECT_EQ(result.losses().at(LossKind::kContexts), 3);
  EXPECT_TRUE(read(definitions).losses().empty());
}

TEST(RecorderDefinitions, TextsPastTheLimitAreOneAndCounted) {
  std::vector<PhasePattern> patterns;
  Definitions definitions(patterns);
  for (size_t i = 0; i < Definitions::kMaxStrings; ++i) definitions.string(std::to_string(i));
  EXPECT_EQ(definitions.string("new")->text, "(other)");
  EXPECT_EQ(definitions.string("newer"), definitions.string("new"));
  EXPECT_EQ(definitions.string("77")->text, "77");
  EXPECT_EQ(read(definitions).losses().at(LossKind::kStrings), 3);
  definitions.string("newest");
  EXPECT_EQ(read(definitions).losses().at(LossKind::kStrings), 1);
}

TEST(RecorderDefinitions, OtherRecordsAreReadAgain) {
  std::vector<PhasePattern> patterns;
  Definitions definitions(patterns);
  definitions.add_property("process.pid", "12");
  definitions.add_property("empty", "");
  definitions.add_thread(4, 1234, "worker");
  definitions.add_loss(LossKind::kCuptiDropped, 0);
  definitions.add_loss(LossKind::kThreadRecords, 7);
  definitions.add_clock_pair();
  ProcessDefinitions result = read(definitions);
  EXPECT_EQ(result.properties().at("process.pid"), "12");
  EXPECT_EQ(result.properties().at("empty"), "");
  EXPECT_EQ(result.threads().at(4).tid, 1234);
  EXPECT_EQ(result.text(result.threads().at(4).name), "worker");
  EXPECT_EQ(result.losses().size(), 1);
  EXPECT_NE(result.realtime(1), 0);
}

// ---- steps

class StepsTest : public testing::Test {
 protected:
  uint32_t current() const { return steps_.current_step().load(); }
  uint32_t open_range(const char* phase) {
    return steps_.open_range({.phase = definitions_.string(phase)->id}, definitions_);
  }
  uint32_t open_mark(const char* phase) {
    return steps_.open_mark({.phase = definitions_.string(phase)->id}, definitions_, &ended_);
  }

  std::vector<PhasePattern> patterns_;
  Definitions definitions_{patterns_};
  Steps steps_;
  uint32_t ended_ = 0;
};

TEST_F(StepsTest, BeginAndEndWithTheirRange) {
  EXPECT_EQ(current(), kStartupStep);
  uint32_t step = open_range("prefill");
  EXPECT_EQ(step, kFirstStep);
  EXPECT_EQ(current(), step);
  steps_.close_range(step, definitions_);
  EXPECT_EQ(current(), kNoStep);
  ProcessDefinitions result = read(definitions_);
  EXPECT_EQ(result.text(result.step(step)->phase), "prefill");
  EXPECT_GE(result.step(step)->end, result.step(step)->begin);
}

TEST_F(StepsTest, LastOpenedRangeIsTheCurrentOne) {
  uint32_t first = open_range("a"), second = open_range("b");
  EXPECT_EQ(current(), second);
  steps_.close_range(first, definitions_);
  EXPECT_EQ(current(), second);
  steps_.close_range(second, definitions_);
  EXPECT_EQ(current(), kNoStep);
}

TEST_F(StepsTest, MarkHoldsUntilTheNextOne) {
  uint32_t first = open_mark("a");
  EXPECT_EQ(ended_, 0);
  EXPECT_EQ(current(), first);
  uint32_t range = open_range("b");
  EXPECT_EQ(current(), range);
  steps_.close_range(range, definitions_);
  EXPECT_EQ(current(), first);
  uint32_t second = open_mark("a");
  EXPECT_EQ(ended_, first);
  EXPECT_EQ(current(), second);
  ProcessDefinitions result = read(definitions_);
  EXPECT_NE(result.step(first)->end, 0);
  EXPECT_EQ(result.step(second)->end, 0);
  EXPECT_EQ(result.step(second)->number, 2);
}

TEST_F(StepsTest, RangeClosesOnce) {
  uint32_t step = open_range("a");
  steps_.close_range(step, definitions_);
  definitions_.drain();
  steps_.close_range(step, definitions_);
  steps_.close_range(99, definitions_);
  EXPECT_THAT(definitions_.drain(), IsEmpty());
}

TEST_F(StepsTest, NamedPhasesAreKnownFromFoundOnes) {
  steps_.open_range({.phase = 1, .found = true}, definitions_);
  EXPECT_FALSE(steps_.named_is_open());
  uint32_t named = open_range("a");
  EXPECT_TRUE(steps_.named_is_open());
  steps_.close_range(named, definitions_);
  EXPECT_FALSE(steps_.named_is_open());
  open_mark("b");
  EXPECT_TRUE(steps_.named_is_open());
}

TEST_F(StepsTest, OpeningsOfEachPhaseAreCounted) {
  EXPECT_EQ(steps_.count_opening(1), 0);
  EXPECT_EQ(steps_.count_opening(1), 1);
  EXPECT_EQ(steps_.count_opening(2), 0);
}

TEST_F(StepsTest, ForkedChildIsInNoRangeOfItsParents) {
  open_range("a");
  steps_.forget_open();
  EXPECT_EQ(current(), kNoStep);
}

TEST(CollectorWants, EveryNthOpeningOfTheNamedPhases) {
  Options options;
  options.collect_phases = {"decode"};
  options.every = 3;
  Collector collector(options);
  EXPECT_TRUE(collector.wants("decode", 0));
  EXPECT_FALSE(collector.wants("decode", 1));
  EXPECT_TRUE(collector.wants("decode", 3));
  EXPECT_FALSE(collector.wants("prefill", 0));
}

// ---- started ranges

TEST(StartEnd, RangeIsEndedElsewhereOnce) {
  StartEndRanges ranges;
  uint64_t id = ranges.add(), other = ranges.add();
  EXPECT_NE(id, other);
  ranges.set_step(id, 5);
  EXPECT_FALSE(ranges.take_ended(id));
  EXPECT_EQ(ranges.end_elsewhere(id), 5);
  EXPECT_EQ(ranges.end_elsewhere(id), 0);
  EXPECT_TRUE(ranges.take_ended(id));
  EXPECT_FALSE(ranges.take_ended(id));
  EXPECT_FALSE(ranges.take_ended(other));
}

TEST(StartEnd, RemovedRangeCanNotBeEnded) {
  StartEndRanges ranges;
  uint64_t id = ranges.add();
  ranges.set_step(id, 5);
  ranges.remove(id);
  EXPECT_EQ(ranges.end_elsewhere(id), 0);
  EXPECT_FALSE(ranges.take_ended(id));
  EXPECT_EQ(ranges.end_elsewhere(12345), 0);
}

}  // namespace
}  // namespace lamina
