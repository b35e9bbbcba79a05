// From a report to the bars of a chart. Where things stand in the figure: layout_test.cpp.
#include "report/plot/chart.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <numeric>

#include "report/errors.h"
#include "report/names/palette.h"
#include "report/plot/segments.h"

namespace lamina {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

SummaryNode kernel(const std::string& name, double us) { return {name, us, 0, 1, {}}; }

SummaryNode module(const std::string& name, std::vector<SummaryNode> children) {
  SummaryNode node{name, 0, 0, 1, std::move(children)};
  for (const SummaryNode& child : node.children) node.cuda_time_us += child.cuda_time_us;
  return node;
}

PhaseReport phase(const std::string& name, std::vector<std::vector<SummaryNode>> steps) {
  PhaseReport result{.name = name, .step_count = steps.size()};
  for (auto& roots : steps) {
    result.steps.push_back({.number = static_cast<uint32_t>(result.steps.size() + 1), .summary = std::move(roots), .model = {}});
    result.summary = result.steps.back().summary;
  }
  return result;
}

LayerReport report_of(std::vector<PhaseReport> phases) {
  LayerReport report;
  report.phases = std::move(phases);
  return report;
}

// One step of a small model: a decoder layer that launches a kernel of its own beside its submodules.
std::vector<SummaryNode> model() {
  return {module("Model", {module("Layer", {kernel("copy", 5), module("Attention(w=[4])", {kernel("gemm", 30), kernel("flash", 25)}),
                                            module("MLP", {kernel("gemm", 40)})}),
                           module("Sampler", {kernel("argmax", 10)})}),
          kernel("Memcpy DtoH (Device -> Pageable)", 2)};
}

ChartOptions options_of(PlotLevel level) {
  ChartOptions options;
  options.level = level;
  options.profile = "run/";
  return options;
}

struct Made {
  BarChart chart;
  std::vector<std::string> messages;
};

Made make(const LayerReport& report, const ChartOptions& options) {
  Made made;
  made.chart = make_chart(report, options, made.messages);
  return made;
}

// As in `MLP 40, copy 5`: the segments of a bar.
std::string text(const BarChart& chart, size_t bar = 0) {
  std::string result;
  for (size_t i = 0; i < chart.names.size(); ++i) {
    result += (i == 0 ? "" : ", ") + chart.names[i] + " " + std::to_string(static_cast<int>(chart.bars.at(bar).us.at(i)));
  }
  return result;
}

std::vector<std::string> labels(const BarChart& chart) {
  std::vector<std::string> result;
  for (const Bar& bar : chart.bars) result.push_back(bar.label);
  return result;
}

// ---- segments

TEST(Chart, ModulesAreTheInnermostAndOwnKernelsStay) {
  auto chart = make(report_of({phase("prefill", {model()})}), options_of(PlotLevel::kModule)).chart;
  EXPECT_EQ(text(chart), "Attention(w=[4]) 55, MLP 40, Sampler 10, Layer 5, Memcpy DtoH (Device -> Pageable) 2");
  EXPECT_EQ(chart.bars[0].total_us, 112);
}

TEST(Chart, KernelsOfOneNameSayWhoseTheyAre) {
  auto chart = make(report_of({phase("prefill", {model()})}), options_of(PlotLevel::kKernel)).chart;
  EXPECT_EQ(text(chart), "gemm <- MLP 40, gemm <- Attention(w=[4]) 30, flash 25, argmax 10, copy 5, Memcpy DtoH (Device -> Pageable) 2");
}

TEST(Chart, ParentsAreAddedUntilNamesAreUnique) {
  EXPECT_THAT(unique_names({{"k", "A", "X"}, {"k", "A", "Y"}, {"k", "B", "Y"}, {"j", "A", "X"}}),
              ElementsAre("k <- A <- X", "k <- A <- Y", "k <- B", "j"));
  EXPECT_THAT(unique_names({{"k", "A"}, {"k", "A", "X"}, {"k"}}), ElementsAre("k <- A", "k <- A <- X", "k"));
  EXPECT_THAT(unique_names({}), IsEmpty());
}

TEST(Chart, OnePathOfSeveralBarsIsOneName) {
  auto chart = make(report_of({phase("decode", {model(), model()})}), options_of(PlotLevel::kKernel)).chart;
  EXPECT_EQ(chart.names.size(), 6u);
  EXPECT_EQ(text(chart, 0), text(chart, 1));
}

TEST(Chart, FoldedLayersAreOneSegment) {
  for (const char* name : {"Attention", "Attention(w=[4])"}) {
    auto options = options_of(PlotLevel::kKernel);
    options.folds = {name};
    auto made = make(report_of({phase("prefill", {model()})}), options);
    EXPECT_EQ(text(made.chart), "Attention(w=[4]) 55, gemm 40, argmax 10, copy 5, Memcpy DtoH (Device -> Pageable) 2") << name;
    EXPECT_THAT(made.messages, IsEmpty());
  }
  auto options = options_of(PlotLevel::kModule);
  options.folds = {"Layer", "Nothing"};
  auto made = make(report_of({phase("prefill", {model()})}), options);
  EXPECT_EQ(text(made.chart), "Layer 100, Sampler 10, Memcpy DtoH (Device -> Pageable) 2");
  EXPECT_THAT(made.messages, ElementsAre(HasSubstr("--fold Nothing")));
}

TEST(Chart, WithoutTheSamplerSharesStayThoseOfTheStep) {
  auto options = options_of(PlotLevel::kModule);
  options.ignore_sampler = true;
  auto chart = make(report_of({phase("prefill", {model()})}), options).chart;
  EXPECT_EQ(text(chart), "Attention(w=[4]) 55, MLP 40, Layer 5, Memcpy DtoH (Device -> Pageable) 2");
  EXPECT_EQ(chart.bars[0].total_us, 112);
}

TEST(Chart, ADeepTreeIsWalked) {
  std::vector<SummaryNode> tree = {kernel("leaf", 7)};
  for (int depth = 0; depth < 400; ++depth) tree = {module("node", std::move(tree))};
  auto report = report_of({phase("all", {tree})});
  EXPECT_EQ(text(make(report, options_of(PlotLevel::kModule)).chart), "node 7");
  EXPECT_EQ(text(make(report, options_of(PlotLevel::kKernel)).chart), "leaf 7");
}

TEST(Chart, HostileNamesBecomePrintable) {
  std::vector<SummaryNode> roots = {kernel("a\nb\x1b\xff", 2), kernel("", 1)};
  auto chart = make(report_of({phase("x\ny", {roots})}), options_of(PlotLevel::kKernel)).chart;
  EXPECT_THAT(chart.names, ElementsAre("a b \xef\xbf\xbd", "(no name)"));
  EXPECT_THAT(labels(chart), ElementsAre("x y"));
}

// ---- the largest

std::vector<SummaryNode> many(int count) {
  std::vector<SummaryNode> roots;
  for (int i = 1; i <= count; ++i) roots.push_back(kernel("k" + std::to_string(i), i));
  return roots;
}

TEST(Chart, TopKKeepsOneLessAndOthers) {
  auto options = options_of(PlotLevel::kKernel);
  options.top_k = 4;
  EXPECT_EQ(text(make(report_of({phase("all", {many(10)})}), options).chart), "k10 10, k9 9, k8 8, others 28");
  options.top_k = 1;
  EXPECT_EQ(text(make(report_of({phase("all", {many(10)})}), options).chart), "others 55");
}

TEST(Chart, AsManyNamesAsTopKNeedNoOthers) {
  auto options = options_of(PlotLevel::kKernel);
  EXPECT_EQ(options.top_k, 9u);
  EXPECT_EQ(make(report_of({phase("all", {many(9)})}), options).chart.names.back(), "k1");
  auto chart = make(report_of({phase("all", {many(10)})}), options).chart;
  EXPECT_EQ(chart.names.size(), 9u);
  EXPECT_EQ(chart.names.back(), "others");
  EXPECT_EQ(chart.bars[0].us.back(), 3);
}

TEST(Chart, NothingIsLostByTopK) {
  for (size_t top_k : {1, 2, 9, 48, 49, 50, 300}) {
    auto options = options_of(PlotLevel::kKernel);
    options.top_k = top_k;
    auto made = make(report_of({phase("all", {many(300)})}), options);
    const Bar& bar = made.chart.bars[0];
    EXPECT_DOUBLE_EQ(std::accumulate(bar.us.begin(), bar.us.end(), 0.0), 45150);
    EXPECT_EQ(made.chart.names.size(), std::min<size_t>(top_k, kMaxLooks + 1));
    EXPECT_EQ(made.messages.size(), top_k > kMaxLooks + 1 ? 1u : 0u);
  }
}

// A phase of many steps, or of long ones, does not decide alone which names are shown.
TEST(Chart, PhasesWeighTheSame) {
  auto options = options_of(PlotLevel::kKernel);
  options.top_k = 3;
  std::vector<SummaryNode> prefill = {kernel("gemm", 9000), kernel("norm", 1000)};
  std::vector<SummaryNode> decode = {kernel("gemv", 6), kernel("add", 4)};
  auto chart = make(report_of({phase("prefill", {prefill}), phase("decode", {decode, decode, decode})}), options).chart;
  EXPECT_THAT(chart.names, ElementsAre("gemm", "gemv", "others"));
}

// ---- bars

TEST(Chart, AStepIsABar) {
  auto report = report_of({phase("prefill", {model()}), phase("decode", {model(), model()}), phase("verify", {model(), model()})});
  (*report.phases[0].steps[0].metadata)["num_running_seqs"] = 4;
  (*report.phases[1].steps[1].metadata)["num_running_seqs"] = 32;
  (*report.phases[2].steps[0].metadata)["num_running_seqs"] = "many";
  *report.phases[2].steps[1].metadata = nlohmann::ordered_json::object();
  EXPECT_THAT(labels(make(report, options_of(PlotLevel::kModule)).chart), ElementsAre("prefill", "decode_1", "decode_2-seqs-32", "verify_1", "verify_2"));
}

TEST(Chart, WhatNoPhaseHoldsIsDrawnOnlyAlone) {
  auto made = make(report_of({phase("startup", {model()}), phase("prefill", {model()}), phase("(none)", {{}})}), options_of(PlotLevel::kModule));
  EXPECT_THAT(labels(made.chart), ElementsAre("prefill"));
  EXPECT_THAT(made.messages, ElementsAre(HasSubstr("startup: not drawn")));
  made = make(report_of({phase("startup", {model()}), phase("(none)", {model()})}), options_of(PlotLevel::kModule));
  EXPECT_THAT(labels(made.chart), ElementsAre("startup", "(none)"));
}

TEST(Chart, PhaseChooses) {
  auto report = report_of({phase("startup", {model()}), phase("prefill", {model()}), phase("decode", {model(), model()})});
  auto chosen = [&](const char* name) {
    auto options = options_of(PlotLevel::kModule);
    options.phase = name;
    return labels(make(report, options).chart);
  };
  EXPECT_THAT(chosen("startup"), ElementsAre("startup"));
  EXPECT_THAT(chosen("decode"), ElementsAre("decode_1", "decode_2"));
  EXPECT_THAT(chosen("decode_2"), ElementsAre("decode_2"));
  EXPECT_THROW(chosen("encode"), InputError);
}

std::vector<std::string> decode_labels(size_t steps, std::optional<uint32_t> interval) {
  auto options = options_of(PlotLevel::kModule);
  options.step_interval = interval;
  return labels(make(report_of({phase("prefill", {model()}), phase("decode", {steps, model()})}), options).chart);
}

TEST(Chart, StepIntervalKeepsTheLast) {
  EXPECT_THAT(decode_labels(8, 3), ElementsAre("prefill", "decode_1", "decode_4", "decode_7", "decode_8"));
  EXPECT_THAT(decode_labels(7, 3), ElementsAre("prefill", "decode_1", "decode_4", "decode_7"));
  EXPECT_THAT(decode_labels(8, 100), ElementsAre("prefill", "decode_1", "decode_8"));
  EXPECT_EQ(decode_labels(200, 1).size(), 201u);
  EXPECT_THROW(decode_labels(3000, 1), UsageError);
}

TEST(Chart, VeryManyStepsAreThinned) {
  for (size_t steps : {1, 59, 60, 100, 1000, 5000}) {
    auto made = make(report_of({phase("prefill", {model()}), phase("decode", {steps, model()})}), options_of(PlotLevel::kModule));
    EXPECT_LE(made.chart.bars.size(), 60u);
    EXPECT_EQ(made.chart.bars.back().label, "decode_" + std::to_string(steps));
    EXPECT_EQ(made.messages.size(), made.chart.bars.size() == steps + 1 ? 0u : 1u) << steps;
    EXPECT_GE(made.chart.bars.size(), std::min<size_t>(steps + 1, 20)) << steps;
  }
}

TEST(Chart, NothingAtAllIsAnError) {
  EXPECT_THROW(make(report_of({}), options_of(PlotLevel::kModule)), InputError);
  EXPECT_THROW(make(report_of({phase("decode", {})}), options_of(PlotLevel::kModule)), InputError);
}

TEST(Chart, NoTimeIsABarOfNothing) {
  auto chart = make(report_of({phase("prefill", {{module("Model", {kernel("k", 0)})}}), phase("decode", {{}})}), options_of(PlotLevel::kModule)).chart;
  EXPECT_THAT(labels(chart), ElementsAre("prefill", "decode_1"));
  EXPECT_THAT(chart.names, IsEmpty());
  EXPECT_EQ(chart.bars[0].total_us, 0);
}

// ---- words

TEST(Chart, TitleComesFromTheContext) {
  auto report = report_of({phase("prefill", {model()})});
  *report.context = {{"cuda_devices", "[_CudaDeviceProperties(name='NVIDIA H200', major=9), _CudaDeviceProperties(name='NVIDIA H200')]"},
                    {"engine_args", {{"model", "a/B\n"}, {"tensor_parallel_size", 8}}},
                    {"batch_size", 4},
                    {"prompt_len", 512}};
  auto chart = make(report, options_of(PlotLevel::kKernel)).chart;
  EXPECT_EQ(chart.title, "a/B : GPU time by kernel");
  EXPECT_EQ(chart.subtitle, "batch size 4, prompt length 512, tensor parallel 8, NVIDIA H200");
}

TEST(Chart, OldFlatContextsAndNoneAtAll) {
  auto report = report_of({phase("prefill", {model()})});
  *report.context = {{"model", "m"}, {"tensor_parallel_size", 1}, {"batch_size", nullptr}, {"cuda_devices", "name='x"}};
  auto chart = make(report, options_of(PlotLevel::kModule)).chart;
  EXPECT_EQ(chart.title, "m: GPU time by module");
  EXPECT_EQ(chart.subtitle, "x");
  *report.context = {{"engine_args", "?"}, {"cuda_devices", 7}};
  chart = make(report, options_of(PlotLevel::kModule)).chart;
  EXPECT_EQ(chart.title, "run: GPU time by module");
  EXPECT_EQ(chart.subtitle, "");
}

}  // namespace
}  // namespace lamina
