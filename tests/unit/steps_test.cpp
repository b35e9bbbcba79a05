// Phases and their steps in the report, and streams of which pieces are missing.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "read_back.h"

namespace lamina {
namespace {

using namespace format;
using testing::ElementsAre;

TEST(PhaseSteps, ProgramWithoutPhasesIsAll) {
  ProfileBuilder p;
  p.thread().launch(1);
  p.kernel(1, "k", 1);
  EXPECT_THAT(phase_names(read_back(p)), ElementsAre("all"));
}

TEST(PhaseSteps, FoundStepsCountWhereTheProgramNamesNone) {
  ProfileBuilder p;
  p.thread().set_step(p.add_step("prefill", true, 0, true)).launch(1).set_step(p.add_step("decode", true, 0, true)).launch(2);
  for (uint32_t i : {1, 2}) p.kernel(i, "k", 1);
  EXPECT_THAT(phase_names(read_back(p)), ElementsAre("prefill", "decode"));
}

TEST(PhaseSteps, FoundStepsAreNoneWhereTheProgramNamesAny) {
  ProfileBuilder p;
  auto found = [&] { return p.add_step("decode", true, 0, true); };
  p.thread().set_step(found()).launch(1).set_step(p.add_step("decode")).launch(2).set_step(found()).launch(3);
  for (uint32_t i : {1, 2, 3}) p.kernel(i, "k", 1);
  auto report = read_back(p);
  EXPECT_THAT(phase_names(report), ElementsAre("startup", "decode", "(none)"));
  EXPECT_EQ(report.report.phases[1].step_count, 1);
}

TEST(PhaseSteps, WhatIsOutsideOfPhasesHasItsOwn) {
  ProfileBuilder p;
  p.thread().push("load").launch(1).pop().phase("prefill").push("mlp").launch(2).pop().end_phase();
  p.thread().push("sample").launch(3).pop();
  for (uint32_t i = 1; i <= 3; ++i) p.kernel(i, "k", i);
  ReadBack result = read_back(p);
  EXPECT_THAT(phase_names(result), ElementsAre("startup", "prefill", "(none)"));
  EXPECT_EQ(model_text(result, "startup"), "load 1\n  k 1\n");
  EXPECT_EQ(model_text(result, "prefill"), "mlp 2\n  k 2\n");
  EXPECT_EQ(model_text(result, "(none)"), "sample 3\n  k 3\n");
}

TEST(PhaseSteps, OpeningsOfAPhaseAreItsSteps) {
  ProfileBuilder p;
  for (uint32_t i = 1; i <= 3; ++i) {
    p.thread().phase("decode").push("mlp").launch(i).pop().end_phase();
    p.kernel(i, "k", i);
  }
  ReadBack result = read_back(p);
  EXPECT_EQ(result.report.phases.at(0).step_count, 3);
  EXPECT_EQ(model_text(result, "decode", 1), "mlp 1\n  k 1\n");
  EXPECT_EQ(model_text(result, "decode", 3), "mlp 3\n  k 3\n");
  EXPECT_EQ(summary_text(result, "decode"), "mlp 6 x3\n  k 6 x3\n");
}

TEST(PhaseSteps, InnermostPhaseCounts) {
  ProfileBuilder p;
  p.thread().phase("run").push("a").launch(1).phase("decode").push("b").launch(2).pop().end_phase().launch(3);
  for (uint32_t i = 1; i <= 3; ++i) p.kernel(i, "k", i);
  ReadBack result = read_back(p);
  EXPECT_EQ(model_text(result, "run"), "a 4\n  k 1\n  k 3\n");
  EXPECT_EQ(model_text(result, "decode"), "a 2\n  b 2\n    k 2\n");
}

TEST(PhaseSteps, CallThatGoesOnOverSeveralStepsStandsInEach) {
  ProfileBuilder p;
  p.thread().push("model").launch(1);
  uint32_t decode = p.add_step("decode");
  p.thread().set_step(decode).launch(2).set_step(p.add_step("decode")).launch(3).set_step(kNoStep).launch(4).pop();
  for (uint32_t i = 1; i <= 4; ++i) p.kernel(i, "k", i);
  ReadBack result = read_back(p);
  EXPECT_EQ(model_text(result, "startup"), "model 1\n  k 1\n");
  EXPECT_EQ(model_text(result, "decode", 1), "model 2\n  k 2\n");
  EXPECT_EQ(model_text(result, "decode", 2), "model 3\n  k 3\n");
  EXPECT_EQ(model_text(result, "(none)"), "model 4\n  k 4\n");
}

TEST(PhaseSteps, CallStandsWhereItWasOpenedEvenWithoutALaunchThere) {
  ProfileBuilder p;
  p.thread().push("model").set_step(p.add_step("decode")).launch(1).pop();
  p.kernel(1, "k", 1);
  ReadBack result = read_back(p);
  EXPECT_EQ(model_text(result, "startup"), "model 0\n");
  EXPECT_EQ(model_text(result, "decode"), "model 1\n  k 1\n");
}

TEST(PhaseSteps, ReturningToAStepGoesOnInTheSameCall) {
  ProfileBuilder p;
  p.thread().phase("decode");
  uint32_t step = p.thread().step();
  p.thread().push("model").launch(1).set_step(kNoStep).launch(2).set_step(step).launch(3).pop();
  for (uint32_t i = 1; i <= 3; ++i) p.kernel(i, "k", i);
  EXPECT_EQ(model_text(read_back(p), "decode"), "model 4\n  k 1\n  k 3\n");
}

TEST(PhaseSteps, StepsThatWereNotToBeCollectedAreLeftOut) {
  ProfileBuilder p;
  p.thread().phase("decode").push("mlp").launch(1).pop().end_phase();
  p.thread().phase("decode", false).push("mlp").launch(2).pop().end_phase();
  p.kernel(1, "k", 1);
  p.kernel(2, "k", 2);
  ReadBack result = read_back(p);
  EXPECT_EQ(summary_text(result, "decode"), "mlp 1 x1\n  k 1 x1\n");
  EXPECT_EQ(result.report.phases.at(0).step_count, 1);
  EXPECT_EQ(result.account().not_shown, 1);
}

TEST(PhaseSteps, LaunchesWithoutTheirKernelAreCountedByStep) {
  ProfileBuilder p;
  p.thread().phase("decode").launch(1).end_phase().phase("decode").launch(2).launch(3);
  uint32_t step = p.thread().step();
  p.kernel(1, "k", 1);
  p.kernel(3, "k", 1);
  EXPECT_THAT(read_back(p).account().missing_in_step, ElementsAre(std::pair(step, uint64_t{1})));
}

TEST(PhaseSteps, PhaseOfSeveralProcessesIsOne) {
  LayerTree tree({});
  std::vector<double> times = {1, 2};
  for (double us : times) {
    ProfileBuilder p;
    p.thread().phase("decode").push("mlp").launch(1).pop().end_phase();
    p.kernel(1, "k", us);
    TemporaryFile file(p.bytes());
    read_profile(file.path(), tree);
  }
  ReadBack result;
  tree.finish(result.report);
  EXPECT_EQ(summary_text(result, "decode"), "mlp 3 x2\n  k 3 x2\n");
}

// ---- how many sequences a step runs

std::string sequences(const ReadBack& result, size_t phase, size_t step) {
  return result.report.phases.at(phase).steps.at(step).metadata->dump();
}

TEST(StepMetadata, SequencesAreThoseOfTheRangeThatOpenedTheStep) {
  ProfileBuilder p;
  const std::pair<const char*, const char*> kSteps[] = {
      {"execute_context_4(2048)_generation_0(0)", "prefill"},
      {"execute_32_context_0(sq0sk0sqsq0sqsk0)_generation_32(sq32sk900sqsq32sqsk900)", "decode"},
      {"[Executor] _forward_step 47: 0 ctx reqs, 0 ctx tokens, 31 gen reqs", "decode"},
      {"phase:decode", "decode"},
  };
  uint32_t launches = 0;
  for (auto [text, phase] : kSteps) {
    p.thread().step_range(text, phase).push("a").launch(++launches).pop().end_phase();
    p.kernel(launches, "k", 1);
  }
  ReadBack result = read_back(p);
  EXPECT_EQ(sequences(result, 0, 0), R"({"num_running_seqs":4})");
  EXPECT_EQ(sequences(result, 1, 0), R"({"num_running_seqs":32})");
  EXPECT_EQ(sequences(result, 1, 1), R"({"num_running_seqs":31})");
  EXPECT_EQ(sequences(result, 1, 2), R"({"num_running_seqs":null})");
}

TEST(StepMetadata, SequencesOfAPatternsStepAreKnownToo) {
  ProfileBuilder p;
  p.thread().step_range("execute_context_1(7)_generation_2(2)", "mine").launch(1).end_phase();
  p.kernel(1, "k", 1);
  EXPECT_EQ(sequences(read_back(p), 0, 0), R"({"num_running_seqs":3})");
}

TEST(StepMetadata, SequencesOfProcessesThatDisagreeAreNotKnown) {
  for (const char* second : {"execute_context_0(0)_generation_8(8)", "execute_context_0(0)_generation_9(9)"}) {
    LayerTree tree({});
    for (const char* text : {"execute_context_0(0)_generation_8(8)", second}) {
      ProfileBuilder p;
      p.thread().step_range(text, "decode").launch(1).end_phase();
      p.kernel(1, "k", 1);
      TemporaryFile file(p.bytes());
      read_profile(file.path(), tree);
    }
    ReadBack result;
    tree.finish(result.report);
    bool agree = std::string(second).ends_with("8(8)");
    EXPECT_EQ(sequences(result, 0, 0), agree ? R"({"num_running_seqs":8})" : R"({"num_running_seqs":null})");
  }
}

// ---- missing pieces

TEST(LostPieces, ThreadStateTellsTheOpenCallsAgain) {
  ProfileBuilder p;
  p.thread().push("a").launch(1);
  p.flush();
  p.thread().pop().push("b").push("c");
  p.thread().lose();
  p.thread().state().launch(2).pop().launch(3).pop().launch(4);
  for (uint32_t i = 1; i <= 4; ++i) p.kernel(i, "k", i);
  ReadBack result = read_back(p);
  EXPECT_EQ(model_text(result, "all"), "a 1\n  k 1\nb 5\n  c 2\n    k 2\n  k 3\n(no module) 4\n  k 4\n");
  EXPECT_EQ(result.account().lost_pieces, 1);
  EXPECT_EQ(result.account().damaged_records, 0);
}

TEST(LostPieces, CallsAreNumberedOnAsTheThreadStateSays) {
  ProfileBuilder p;
  p.thread().push("a");
  p.flush();
  p.thread().push("b").pop().lose();
  p.thread().state().push("c").launch(1).state().launch(2);
  p.kernel(1, "k", 1);
  p.kernel(2, "k", 1);
  EXPECT_EQ(summary_text(read_back(p), "all"), "a 2 x1\n  c 2 x1\n    k 2 x2\n");
}

// Pushes and pops say nothing without what was open, but each launch tells its context.
TEST(LostPieces, LaunchesUntilTheNextThreadStateStandInTheirContext) {
  ProfileBuilder p;
  p.thread().push("a");
  p.flush();
  p.thread().push("b").lose();
  p.thread().push("c").launch(1).pop().pop().launch(2).pop().launch(3);
  for (uint32_t i = 1; i <= 3; ++i) p.kernel(i, "k", i);
  EXPECT_EQ(model_text(read_back(p), "all"),
            "a 0\na 1\n  b 1\n    c 1\n      k 1\na 2\n  k 2\n(no module) 3\n  k 3\n");
}

TEST(LostPieces, PieceThatCameBeforeIsNoGap) {
  ProfileBuilder p;
  p.thread().push("a").launch(1);
  p.flush();
  p.thread().skip_pieces(-1u);
  p.thread().state().launch(2).pop();
  p.kernel(1, "k", 1);
  p.kernel(2, "k", 1);
  EXPECT_LE(read_back(p).account().lost_pieces, 1);
}

TEST(LostPieces, ThreadStateInTheMiddleChangesNothing) {
  ProfileBuilder p;
  p.thread().push("a").push("b").launch(1).state().launch(2).pop().state().launch(3).pop();
  for (uint32_t i = 1; i <= 3; ++i) p.kernel(i, "k", i);
  EXPECT_EQ(summary_text(read_back(p), "all"), "a 6 x1\n  b 3 x1\n    k 3 x2\n  k 3 x1\n");
}

TEST(LostPieces, ThreadStateTellsTheStep) {
  ProfileBuilder p;
  p.thread().phase("prefill").launch(1);
  p.flush();
  p.thread().end_phase().phase("decode").lose();
  p.thread().state().launch(2);
  p.kernel(1, "k", 1);
  p.kernel(2, "k", 2);
  EXPECT_EQ(model_text(read_back(p), "decode"), "(no module) 2\n  k 2\n");
}

TEST(LostPieces, PopBelowTheStackIsPassedOver) {
  ProfileBuilder p;
  p.thread().record(RecordKind::kPop, 0, 7, PopRecord{}).push("a").launch(1).pop();
  p.kernel(1, "k", 1);
  ReadBack result = read_back(p);
  EXPECT_EQ(model_text(result, "all"), "a 1\n  k 1\n");
  EXPECT_EQ(result.account().damaged_records, 1);
}

// ---- ids whose definitions are missing

TEST(UnknownIds, ContextIsShownAsUnknown) {
  ProfileBuilder p;
  p.thread().push_context(77).launch(1).pop();
  p.kernel(1, "k", 1);
  EXPECT_EQ(model_text(read_back(p), "all"), "(unknown) 1\n  k 1\n");
}

TEST(UnknownIds, OtherContextHasLostItsName) {
  ProfileBuilder p;
  p.thread().push_context(kOtherContext).launch(1).pop();
  p.kernel(1, "k", 1);
  EXPECT_EQ(model_text(read_back(p), "all"), "(other) 1\n  k 1\n");
}

TEST(UnknownIds, StringThatIsMissingAmongOthersIsUnknown) {
  ProfileBuilder p;
  p.string("lost layer");
  p.string("lost kernel");
  p.lose_definitions();
  p.string("later");
  p.thread().push("lost layer").launch(1).pop();
  p.kernel(1, "lost kernel", 1);
  EXPECT_EQ(model_text(read_back(p), "all"), "(unknown) 1\n  (unknown) 1\n");
}

TEST(UnknownIds, EmptyNameHasARow) {
  ProfileBuilder p;
  p.thread().push("").launch(1).pop();
  p.kernel(1, "k", 1);
  EXPECT_EQ(model_text(read_back(p), "all"), "(unnamed) 1\n  k 1\n");
}

TEST(UnknownIds, StepIsStartup) {
  ProfileBuilder p;
  p.thread().set_step(55).push("a").launch(1).pop();
  p.kernel(1, "k", 1);
  EXPECT_EQ(model_text(read_back(p), "all"), "a 1\n  k 1\n");
}

TEST(UnknownIds, ActivityOfNoSiteIsDamage) {
  ProfileBuilder p;
  p.thread().launch(1);
  p.kernel(1, "k", 1);
  p.flush();
  std::vector<char> records;
  append_record(records, RecordKind::kActivity, 0, 9, ActivityRecord{});
  ChunkHeader header{};
  header.kind = ChunkKind::kActivity;
  p.add_bytes(chunk_bytes(header, records));
  EXPECT_EQ(read_back(p).account().damaged_records, 1);
}

}  // namespace
}  // namespace lamina
