#include "report/tree/kernel_rows.h"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "report/load/layerwise_json.h"
#include "report/tree/layer_tree.h"

namespace lamina {
namespace {

SummaryNode kernel(const std::string& name, double us, double count, Durations each) {
  return {.name = name, .cuda_time_us = us, .pct_cuda_time = 0, .invocations = count, .children = {}, .each = each};
}

SummaryNode layer(const std::string& name, std::vector<SummaryNode> children) {
  return {.name = name, .cuda_time_us = 0, .pct_cuda_time = 0, .invocations = 1, .children = std::move(children)};
}

TEST(KernelRows, AreOfTheWholeTree) {
  std::vector<SummaryNode> tree = {
      layer("model", {layer("a", {kernel("k", 10, 4, {1, 5}), kernel("one", 3, 1, {3, 3})}), layer("b", {kernel("k", 20, 1, {20, 20})})}),
      layer("c", {layer("a", {kernel("k", 7, 2, {0.5, 6.5})}), layer("nothing", {})})};
  auto rows = kernel_rows(tree);
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].name, "k");
  EXPECT_EQ(rows[0].count, 7);
  EXPECT_EQ(rows[0].total_us, 37);
  EXPECT_DOUBLE_EQ(rows[0].mean_us(), 37. / 7);
  EXPECT_EQ(rows[0].min_us, 0.5);
  EXPECT_EQ(rows[0].max_us, 20);
  EXPECT_DOUBLE_EQ(rows[0].pct_cuda_time, 100. * 37 / 40);
  EXPECT_EQ(rows[0].layers, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(rows[0].layer_paths, (std::vector<std::string>{"model/a", "model/b", "c/a"}));
  EXPECT_EQ(rows[1].name, "one");
}

TEST(KernelRows, OfNoTimeHaveNoShare) {
  EXPECT_TRUE(kernel_rows(PhaseReport()).empty());
  std::vector<SummaryNode> tree = {layer("m", {kernel("k", 0, 0, {0, 0})})};
  auto rows = kernel_rows(tree);
  EXPECT_EQ(rows.at(0).pct_cuda_time, 0);
  EXPECT_EQ(rows.at(0).mean_us(), 0);
}

TEST(KernelRows, OfALayerTreeAreExact) {
  LayerTree tree({});
  uint32_t name = tree.name_id("k");
  for (uint32_t step : {1, 2, 3}) {
    Position call = tree.enter(tree.step("decode", step), {tree.name_id("m")}, {step});
    tree.enter(call, {tree.name_id("empty")}, {step});
    tree.add_activity(call, name, 0, 2.0 + step, {step});
    tree.add_activity(call, name, 0, 9.0 - step, {step});
  }
  LayerReport report;
  tree.finish(report);
  auto rows = kernel_rows(report.phases.at(0));
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].count, 6);
  EXPECT_EQ(rows[0].min_us, 3);
  EXPECT_EQ(rows[0].max_us, 8);
  auto first = kernel_rows(report.phases.at(0).steps.at(0));
  EXPECT_EQ(first.at(0).min_us, 3);
  EXPECT_EQ(first.at(0).max_us, 8);
  EXPECT_EQ(first.at(0).count, 2);
}

std::string data_file(const std::string& name) {
  std::ifstream file(std::string(LAMINA_TEST_DATA) + "/" + name, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

TEST(KernelRows, OfALayerwiseJsonComeFromItsModel) {
  LayerReport report = read_layerwise_json(data_file("layerwise-sample.json"), "sample");
  auto rows = kernel_rows(report.phases.at(0));
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].name, "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64");
  EXPECT_EQ(rows[0].min_us, 900.25);
  EXPECT_EQ(rows[0].max_us, 900.25);
  EXPECT_EQ(rows[0].layers, std::vector<std::string>{"QKVParallelLinear(weight=bfloat16[6144, 4096])"});
}

TEST(KernelRows, OfSeveralStepsOfAJsonAreTogether) {
  auto step = [](double us) {
    std::string number = std::to_string(us);
    return R"({"summary_stats": [{"entry": {"name": "m.*", "cuda_time_us": )" + number +
           R"(, "pct_cuda_time": 100, "invocations": 1}, "children":
      [{"entry": {"name": "k", "cuda_time_us": )" +
           number + R"(, "pct_cuda_time": 100, "invocations": 1}, "children": []}]}],
      "model_stats": [{"entry": {"name": "m.0", "cpu_time_us": 1, "cuda_time_us": )" +
           number + R"(, "pct_cuda_time": 100, "trace": ""}, "children":
      [{"entry": {"name": "k", "cpu_time_us": 0, "cuda_time_us": )" +
           number + R"(, "pct_cuda_time": 100, "trace": ""}, "children": []}]}]})";
  };
  LayerReport report = read_layerwise_json(R"({"context": {}, "decode_1": )" + step(2) + R"(, "decode_2": )" + step(5) + "}", "f");
  auto rows = kernel_rows(report.phases.at(0));
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].min_us, 2);
  EXPECT_EQ(rows[0].max_us, 5);
  EXPECT_EQ(rows[0].count, 2);
}

}  // namespace
}  // namespace lamina
