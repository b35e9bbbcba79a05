// Busy and idle time of GPUs: by hand, and that rows and busy time add up on real profiles.
#include "report/attribution/device_time.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>
#include <random>

#include "read_back.h"
#include "report/format.h"
#include "report/load/load_report.h"
#include "report/render/gpu_time_text.h"

namespace lamina {
namespace {

using namespace format;
using testing::HasSubstr;

constexpr uint64_t kBegin = 1'700'000'000'000'000'000;
constexpr uint64_t at(double us) { return kBegin + static_cast<uint64_t>(us * 1000); }

ReadBack read_times(ProfileBuilder& profile) {
  TemporaryFile file(profile.bytes());
  LayerTree::Options options;
  options.step_summaries = true;
  options.gpu_time = true;
  LayerTree tree(std::move(options));
  ReadBack result;
  result.processes = read_profile(file.path(), tree);
  tree.finish(result.report);
  return result;
}

void add_rows(std::string& text, const std::vector<SummaryNode>& rows, size_t depth) {
  for (const SummaryNode& row : rows) {
    text += fmt::format("{:{}}{} {}\n", "", depth * 2, row.name, row.idle_before_us);
    add_rows(text, row.children, depth + 1);
  }
}
std::string idle_text(const std::vector<SummaryNode>& rows) {
  std::string text;
  add_rows(text, rows, 0);
  return text;
}

const PhaseReport& phase(const ReadBack& result, std::string_view name) {
  return *std::ranges::find_if(result.report.phases, [&](const PhaseReport& phase) { return phase.name == name; });
}

std::string time_text(const GpuTime& time) {
  return fmt::format("span {} busy {} waiting {} before {}", time.span_us, time.busy_us, time.waiting_us, time.before_us);
}

// ---- from profiles

TEST(DeviceTime, IdleTimeIsThatOfTheNextKernelsRow) {
  ProfileBuilder p;
  p.thread().push("a").launch(1).pop().push("b").launch(2).launch(3).pop();
  p.kernel(1, "k", 10, {.start = at(0)});
  p.kernel(2, "k", 5, {.start = at(12)});
  p.kernel(3, "l", 5, {.start = at(47)});
  ReadBack result = read_times(p);
  EXPECT_EQ(idle_text(phase(result, "all").summary), "a 0\n  k 0\nb 32\n  k 2\n  l 30\n");
  EXPECT_EQ(idle_text(phase(result, "all").steps.at(0).summary), "a 0\n  k 0\nb 32\n  k 2\n  l 30\n");
  EXPECT_EQ(time_text(*phase(result, "all").gpu), "span 52 busy 20 waiting 30 before 0");
}

TEST(DeviceTime, StreamsOverlap) {
  ProfileBuilder p;
  p.thread().launch(1).launch(2).launch(3).launch(4);
  p.kernel(1, "long", 100, {.start = at(0), .stream = 7});
  p.kernel(2, "inside", 20, {.start = at(10), .stream = 8});
  p.kernel(3, "over the end", 50, {.start = at(90), .stream = 8});
  p.kernel(4, "later", 10, {.start = at(150), .stream = 7});
  ReadBack result = read_times(p);
  EXPECT_EQ(time_text(*phase(result, "all").gpu), "span 160 busy 150 waiting 10 before 0");
  EXPECT_THAT(idle_text(phase(result, "all").summary), HasSubstr("later 10\n"));
}

TEST(DeviceTime, DevicesAreSummed) {
  ProfileBuilder p;
  p.thread().launch(1).launch(2).launch(3).launch(4);
  p.kernel(1, "a", 10, {.start = at(0), .device = 0});
  p.kernel(2, "a", 10, {.start = at(5), .device = 1});
  p.kernel(3, "b", 10, {.start = at(20), .device = 0});
  p.kernel(4, "b", 10, {.start = at(20), .device = 1});
  ReadBack result = read_times(p);
  EXPECT_EQ(time_text(*phase(result, "all").gpu), "span 55 busy 40 waiting 15 before 0");
  EXPECT_THAT(idle_text(phase(result, "all").summary), HasSubstr("  b 15\n"));
}

TEST(DeviceTime, TimeBetweenStepsIsOfNoLayer) {
  ProfileBuilder p;
  p.thread().phase("decode").launch(1).end_phase().launch(9);
  p.thread().phase("decode").launch(2).launch(3).end_phase();
  p.kernel(1, "k", 10, {.start = at(0)});
  p.kernel(9, "between", 10, {.start = at(30)});
  p.kernel(2, "k", 10, {.start = at(100)});
  p.kernel(3, "k", 10, {.start = at(117)});
  ReadBack result = read_times(p);
  const PhaseReport& decode = phase(result, "decode");
  EXPECT_EQ(time_text(*decode.steps.at(0).gpu), "span 10 busy 10 waiting 0 before 0");
  EXPECT_EQ(time_text(*decode.steps.at(1).gpu), "span 27 busy 20 waiting 7 before 60");
  EXPECT_EQ(time_text(*decode.gpu), "span 37 busy 30 waiting 7 before 60");
  EXPECT_EQ(idle_text(decode.steps.at(1).summary), "(no module) 7\n  k 7\n");
  EXPECT_FALSE(phase(result, "(none)").gpu.has_value());
  EXPECT_EQ(idle_text(phase(result, "(none)").summary), "(no module) 0\n  between 0\n");
}

TEST(DeviceTime, StepsBackToBackLeaveNothingBetween) {
  ProfileBuilder p;
  for (uint32_t i = 0; i < 3; ++i) {
    p.thread().phase("decode").launch(i + 1).end_phase();
    p.kernel(i + 1, "k", 10, {.start = at(10 * i)});
  }
  EXPECT_EQ(time_text(*phase(read_times(p), "decode").gpu), "span 30 busy 30 waiting 0 before 0");
}

TEST(DeviceTime, GapsInsideOfAReplayAreNotTheHosts) {
  ProfileBuilder p;
  p.thread().graph(1).node(1, 0, "k").node(1, 1, "k").instantiate(2, 1);
  p.thread().phase("decode").launch(5).launch_graph(10, 2).launch_graph(11, 2).end_phase();
  p.kernel(5, "k", 10, {.start = at(0)});
  p.kernel(10, "k", 10, {.node = node_id(2, 0), .start = at(20)});
  p.kernel(10, "k", 10, {.node = node_id(2, 1), .start = at(50)});
  p.kernel(11, "k", 10, {.node = node_id(2, 0), .start = at(100)});
  p.kernel(11, "k", 10, {.node = node_id(2, 1), .start = at(115)});
  EXPECT_EQ(time_text(*phase(read_times(p), "decode").gpu), "span 125 busy 50 waiting 50 before 0");
}

TEST(DeviceTime, CommunicationIsKnownByItsName) {
  ProfileBuilder p;
  p.thread().launch(1).launch(2);
  p.kernel(1, "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)", 30, {.start = at(0), .stream = 8});
  p.kernel(2, "gemm", 10, {.start = at(5), .stream = 7});
  GpuTime time = *phase(read_times(p), "all").gpu;
  EXPECT_EQ(time.communication_us, 30);
  EXPECT_EQ(time.exposed_communication_us, 20);
}

TEST(DeviceTime, KernelsWithoutTimesAreLeftOut) {
  ProfileBuilder p;
  p.thread().launch(1).launch(2).launch(3);
  p.kernel(1, "k", 10, {.start = at(0)});
  p.kernel(2, "k", 10, {.timed = false});
  p.kernel(3, "k", 10, {.start = at(10)});
  EXPECT_EQ(time_text(*phase(read_times(p), "all").gpu), "span 20 busy 20 waiting 0 before 0");
}

TEST(DeviceTime, OnlyKernelsWithoutTimesGiveNone) {
  ProfileBuilder p;
  p.thread().launch(1);
  p.kernel(1, "k", 10, {.timed = false});
  EXPECT_FALSE(phase(read_times(p), "all").gpu.has_value());
}

// ---- by itself

class DeviceTimeAlone : public testing::Test {
 protected:
  DeviceTimeAlone() : tree_(options()), time_(tree_) {
    root_ = tree_.step("decode", 1);
    row_ = tree_.add_activity(root_, tree_.name_id("k"), 0, 1, {});
  }
  static LayerTree::Options options() {
    LayerTree::Options options;
    options.gpu_time = true;
    return options;
  }
  void add(double start, double end, bool communication = false) {
    time_.add({.start = at(start), .end = at(end), .row = row_, .communication = communication}, 2, root_);
  }
  GpuTime finish() {
    time_.finish();
    LayerReport report;
    tree_.finish(report);
    return report.phases.at(0).gpu.value();
  }

  LayerTree tree_;
  DeviceTime time_;
  Position root_;
  uint32_t row_ = 0;
};

TEST_F(DeviceTimeAlone, CommunicationIsExposedWhereNothingElseRuns) {
  add(0, 100);           // computes
  add(50, 130, true);    // hidden up to 100, exposed to 130
  add(140, 160, true);   // exposed up to 150
  add(150, 170);
  add(155, 165, true);   // with the others
  GpuTime time = finish();
  EXPECT_EQ(time.communication_us, 105);
  EXPECT_EQ(time.exposed_communication_us, 40);
  EXPECT_EQ(time.busy_us, 160);
  EXPECT_EQ(time.span_us, 170);
}

// As far as the window goes; there are many of them.
TEST_F(DeviceTimeAlone, OrderOfArrivalMakesNoDifference) {
  constexpr size_t kTogether = DeviceTime::kWindow * 3 / 4;
  std::vector<double> starts;
  for (size_t i = 0; i < 8 * kTogether; ++i) starts.push_back(static_cast<double>(i) * 10);
  for (auto first = starts.begin(); first != starts.end(); first += kTogether) std::shuffle(first, first + kTogether, std::mt19937(1));
  for (double start : starts) add(start, start + 4);
  size_t gaps = starts.size() - 1;
  EXPECT_EQ(time_text(finish()), fmt::format("span {} busy {} waiting {} before 0", gaps * 10 + 4, gaps * 4 + 4, gaps * 6));
  EXPECT_EQ(time_.late(), 0);
}

TEST_F(DeviceTimeAlone, WhatComesTooLateIsCountedAndLeftOut) {
  constexpr size_t kMany = 5 * DeviceTime::kWindow;
  for (size_t i = 0; i < kMany; ++i) add(100 + static_cast<double>(i), 101 + static_cast<double>(i));
  add(0, 50);
  add(100 + kMany - 1000, 100 + kMany);  // late too, but within the window
  EXPECT_EQ(time_text(finish()), fmt::format("span {} busy {} waiting 0 before 0", kMany, kMany));
  EXPECT_EQ(time_.late(), 1);
}

// ---- on real profiles

constexpr const char* kProfiles[] = {"h200-eager", "h200-graph", "h200-torch", "h200-torch-graph", "h200-raw-ops", "h200-callers"};

LayerReport load(const std::string& profile, StepDetail steps) {
  LoadOptions options;
  options.steps = steps;
  return load_report(std::string(LAMINA_TEST_DATA "/") + profile, options);
}

double sum_of_idle(const std::vector<SummaryNode>& rows) {
  double sum = 0;
  for (const SummaryNode& row : rows) {
    double below = row.children.empty() ? row.idle_before_us : sum_of_idle(row.children);
    EXPECT_NEAR(row.idle_before_us, below, 1e-6) << row.name;
    sum += row.idle_before_us;
  }
  return sum;
}

TEST(DeviceTime, IdleOfTheRowsAndBusyTimeAreTheSpan) {
  size_t steps = 0;
  for (StepDetail detail : {StepDetail::kSummaries, StepDetail::kModels}) {
    for (const char* profile : kProfiles) {
      for (const PhaseReport& phase : load(profile, detail).phases) {
        double idle = 0;
        for (const StepReport& step : phase.steps) {
          idle += sum_of_idle(step.summary);
          if (!step.gpu) continue;
          ++steps;
          EXPECT_NEAR(sum_of_idle(step.summary) + step.gpu->busy_us, step.gpu->span_us, 1e-6 * step.gpu->span_us) << profile << " " << phase.name;
          EXPECT_GT(step.gpu->busy_us, 0);
          EXPECT_LE(step.gpu->waiting_us, step.gpu->span_us - step.gpu->busy_us + 1e-6);
        }
        EXPECT_EQ(phase.gpu.has_value(), phase.name != "(none)") << profile << " " << phase.name;
        GpuTime all = phase.gpu.value_or(GpuTime{});
        EXPECT_NEAR(idle + all.busy_us, all.span_us, 1e-6 * all.span_us);
        EXPECT_NEAR(sum_of_idle(phase.summary), idle, 1e-6 * idle + 1e-6);
      }
    }
  }
  EXPECT_GT(steps, 50);
}

// Whatever is kept of the steps, their summaries say the same.
void expect_same_rows(std::vector<SummaryNode> a, std::vector<SummaryNode> b) {
  std::ranges::sort(a, {}, &SummaryNode::name);
  std::ranges::sort(b, {}, &SummaryNode::name);
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) {
    EXPECT_EQ(a[i].name, b[i].name);
    EXPECT_NEAR(a[i].cuda_time_us, b[i].cuda_time_us, 1e-6);
    EXPECT_NEAR(a[i].pct_cuda_time, b[i].pct_cuda_time, 1e-6);
    EXPECT_EQ(a[i].invocations, b[i].invocations);
    EXPECT_NEAR(a[i].idle_before_us, b[i].idle_before_us, 1e-6);
    ASSERT_EQ(a[i].each.has_value(), b[i].each.has_value()) << a[i].name;
    EXPECT_NEAR(a[i].each.value_or(Durations{}).min_us, b[i].each.value_or(Durations{}).min_us, 1e-6);
    EXPECT_NEAR(a[i].each.value_or(Durations{}).max_us, b[i].each.value_or(Durations{}).max_us, 1e-6);
    expect_same_rows(std::move(a[i].children), std::move(b[i].children));
  }
}

TEST(StepSummaries, AreThoseOfTheModelTrees) {
  for (const char* profile : kProfiles) {
    LayerReport summaries = load(profile, StepDetail::kSummaries);
    LayerReport models = load(profile, StepDetail::kModels);
    ASSERT_EQ(summaries.phases.size(), models.phases.size());
    for (size_t i = 0; i < models.phases.size(); ++i) {
      const auto& steps = summaries.phases[i].steps;
      ASSERT_EQ(steps.size(), models.phases[i].steps.size());
      for (size_t k = 0; k < steps.size(); ++k) {
        EXPECT_EQ(steps[k].number, models.phases[i].steps[k].number);
        EXPECT_EQ(*steps[k].metadata, *models.phases[i].steps[k].metadata);
        EXPECT_EQ(steps[k].model.empty(), k > 0);
        expect_same_rows(steps[k].summary, models.phases[i].steps[k].summary);
      }
    }
  }
}

// ---- the words

TEST(BoundBy, TheHostWhereATenthIsWaiting) {
  EXPECT_EQ(bound_by({.span_us = 100, .busy_us = 50, .waiting_us = 10}), "host-bound");
  EXPECT_EQ(bound_by({.span_us = 100, .busy_us = 50, .waiting_us = 9}), "GPU-bound");
  EXPECT_EQ(bound_by({}), "GPU-bound");
  EXPECT_TRUE(gpu_time_lines({}).empty());
}

TEST(BoundBy, OnTheH200) {
  auto decode = [](const char* profile) {
    LayerReport report = load(profile, StepDetail::kSummaries);
    return bound_by(*std::ranges::find(report.phases, "decode", &PhaseReport::name)->gpu);
  };
  EXPECT_EQ(decode("h200-torch"), "host-bound");         // eager PyTorch of one layer
  EXPECT_EQ(decode("h200-torch-graph"), "GPU-bound");    // the same, replayed
  EXPECT_EQ(decode("h200-eager"), "GPU-bound");          // C++ launches fast enough
  EXPECT_EQ(decode("h200-graph"), "GPU-bound");
}

}  // namespace
}  // namespace lamina
