#include "report/render/html_page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "report/names/palette.h"
#include "report/render/page_rows.h"

namespace lamina {
namespace {

using nlohmann::ordered_json;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

using Bools = std::vector<bool>;
using Sizes = std::vector<size_t>;

// A phase of two steps; `late` runs in the second only.
PhaseReport two_steps() {
  PhaseReport phase{.name = "decode", .step_count = 2};
  phase.summary = {{"m", 30, 100, 2, {{"k", 25, 83, 2, {}, 3}, {"late", 5, 17, 1, {}}}, 3}};
  StepReport first{.number = 1, .summary = {{"m", 10, 100, 1, {{"k", 10, 100, 1, {}}}}}, .model = {}};
  (*first.metadata)["num_running_seqs"] = 4;
  first.model = {{"m", 50.5, 10, 100, "", {{"k", 0, 10, 100, "mm(x)", {}}}, "model.m"}};
  StepReport second{.number = 2, .summary = {{"m", 20, 100, 1, {{"k", 15, 75, 1, {}}, {"late", 5, 25, 1, {}}}}}, .model = {}};
  phase.steps = {first, second};
  return phase;
}

Page page_of(std::vector<PhaseReport> phases) {
  Page page{.title = "p", .ranks = {}, .account = {}};
  page.ranks.push_back({"all", {}});
  page.ranks[0].report.phases = std::move(phases);
  return page;
}

std::vector<std::string> row_names(const ordered_json& data, const ordered_json& tree) {
  std::vector<std::string> names;
  for (int string : tree["string"]) names.push_back(data["strings"][string]);
  return names;
}

std::vector<int64_t> numbers(const ordered_json& column) { return column.get<std::vector<int64_t>>(); }

// A layer of 100 kernels of 1 to 100 microseconds.
std::vector<ModelNode> hundred_kernels() {
  ModelNode layer{"layer", 1, 5050, 100, "", {}};
  for (int us = 1; us <= 100; ++us) layer.children.push_back({"kernel" + std::to_string(us), 0, static_cast<double>(us), 0, "", {}});
  return {layer};
}

Page page_of_model(std::vector<ModelNode> model) {
  PhaseReport phase{.name = "p", .step_count = 1};
  phase.steps.push_back({.summary = {}, .model = std::move(model)});
  return page_of({phase});
}

TEST(PageData, StepsAreColumnsOfTheSameRows) {
  ordered_json data = page_data(page_of({two_steps()}));
  const ordered_json& phase = data["phases"][0];
  EXPECT_THAT(row_names(data, phase), ElementsAre("m", "k", "late"));
  EXPECT_THAT(numbers(phase["depth"]), ElementsAre(0, 1, 1));
  EXPECT_THAT(numbers(phase["layer"]), ElementsAre(1, 0, 0));
  ASSERT_EQ(phase["views"].size(), 3u);
  EXPECT_THAT(numbers(phase["views"][0]["time"]), ElementsAre(30'000, 25'000, 5'000));
  EXPECT_THAT(numbers(phase["views"][1]["time"]), ElementsAre(10'000, 10'000, 0));
  EXPECT_THAT(numbers(phase["views"][2]["calls"]), ElementsAre(1, 1, 1));
  EXPECT_EQ(phase["views"][1]["step"], 1);
  EXPECT_EQ(phase["views"][1]["sequences"], 4);
  EXPECT_FALSE(phase["views"][2].contains("sequences"));
  EXPECT_EQ(phase["views"][2]["total"], 20'000);
}

TEST(PageData, IdleStandsWhereThereIsAny) {
  ordered_json data = page_data(page_of({two_steps()}));
  EXPECT_THAT(numbers(data["phases"][0]["views"][0]["idle"]), ElementsAre(3'000, 3'000, 0));
  EXPECT_FALSE(data["phases"][0]["views"][1].contains("idle"));
}

TEST(PageData, GpuTimeOfAPhaseIsTheSumOfItsSteps) {
  PhaseReport phase = two_steps();
  phase.steps[0].gpu = GpuTime{10, 8, 3, 1};
  EXPECT_FALSE(page_data(page_of({phase}))["phases"][0]["views"][0].contains("gpu"));
  phase.steps[1].gpu = GpuTime{20, 19, 5, 2};
  const ordered_json views = page_data(page_of({phase}))["phases"][0]["views"];
  EXPECT_THAT(numbers(views[0]["gpu"]), ElementsAre(30'000, 27'000, 8'000, 3'000));
  EXPECT_THAT(numbers(views[2]["gpu"]), ElementsAre(20'000, 19'000, 5'000, 2'000));
}

TEST(PageData, TheFirstStepStandsCallByCall) {
  ordered_json data = page_data(page_of({two_steps()}));
  ASSERT_EQ(data["phases"][0]["models"].size(), 1u);
  const ordered_json& model = data["phases"][0]["models"][0];
  EXPECT_EQ(model["step"], 1);
  EXPECT_THAT(row_names(data, model), ElementsAre("m", "k"));
  EXPECT_THAT(numbers(model["cpu"]), ElementsAre(50'500, 0));
  EXPECT_EQ(model["trace"][0], -1);
  EXPECT_EQ(data["strings"][model["trace"][1].get<int>()], "mm(x)");
  EXPECT_EQ(data["strings"][model["path"][0].get<int>()], "model.m");
  EXPECT_EQ(model["path"][1], -1);
}

TEST(PageData, NamesCarryWhatThePageDrawsThemWith) {
  ordered_json data = page_data(page_of({{.name = "p", .step_count = 1, .summary = {{"m", 1, 100, 1, {{"Memcpy HtoD", 1, 100, 1, {}}}}}}}));
  Colour colour = colour_of("m");
  EXPECT_EQ(data["strings"][0], "m");
  EXPECT_EQ(data["colour"][0], colour.red << 16 | colour.green << 8 | colour.blue);
  EXPECT_EQ(data["group"][0], -1);
  EXPECT_EQ(data["groups"][data["group"][1].get<int>()]["name"], "memory");
  EXPECT_NE(data["short"][1], -1);
}

TEST(PageData, ANameOfALayerAndOfAKernelIsBoth) {
  ordered_json data = page_data(page_of({{.name = "p", .step_count = 1, .summary = {{"x", 1, 100, 1, {{"x", 1, 100, 1, {}}}}}}}));
  EXPECT_NE(data["colour"][0], -1);
  EXPECT_NE(data["group"][0], -1);
}

TEST(PageData, RanksShareTheRowsOfAPhase) {
  Page page = page_of({two_steps()});
  PhaseReport other{.name = "decode", .step_count = 1, .summary = {{"n", 1, 100, 1, {}}}};
  page.ranks.push_back({"3", {}});
  page.ranks[1].report.phases = {other, {.name = "extra", .step_count = 1, .summary = {{"n", 1, 100, 1, {}}}}};
  ordered_json data = page_data(page);
  EXPECT_EQ(data["ranks"], ordered_json({"all", "3"}));
  ASSERT_EQ(data["phases"].size(), 2u);
  EXPECT_THAT(row_names(data, data["phases"][0]), ElementsAre("m", "k", "late", "n"));
  EXPECT_EQ(data["phases"][0]["views"][3]["rank"], 1);
  EXPECT_THAT(numbers(data["phases"][0]["views"][3]["time"]), ElementsAre(0, 0, 0, 1'000));
}

TEST(PageData, ModelTreesAreCutToTheHeaviestRows) {
  PageLimits limits;
  limits.model_rows = 11;
  ordered_json data = page_data(page_of_model(hundred_kernels()), limits);
  const ordered_json& model = data["phases"][0]["models"][0];
  EXPECT_EQ(model["all"], 101);
  EXPECT_THAT(row_names(data, model), ElementsAre("layer", "kernel91", "kernel92", "kernel93", "kernel94", "kernel95", "kernel96", "kernel97",
                                                  "kernel98", "kernel99", "kernel100"));
  EXPECT_EQ(model["total"], 5'050'000);
}

TEST(PageData, SummariesAreCutToTheHeaviestRows) {
  PageLimits limits;
  limits.summary_rows = 2;
  ordered_json data = page_data(page_of({two_steps()}), limits);
  EXPECT_THAT(row_names(data, data["phases"][0]), ElementsAre("m", "k"));
  EXPECT_EQ(data["phases"][0]["all"], 3);
  EXPECT_FALSE(data["phases"][0].contains("step_rows"));
}

TEST(PageData, ManyStepsHaveTheHeaviestRowsOnly) {
  PhaseReport phase = two_steps();
  std::swap(phase.summary[0].children[0], phase.summary[0].children[1]);
  PageLimits limits;
  limits.step_cells = 5;  // two rows for each step
  ordered_json data = page_data(page_of({phase}), limits);
  EXPECT_THAT(row_names(data, data["phases"][0]), ElementsAre("m", "late", "k"));
  EXPECT_THAT(numbers(data["phases"][0]["step_rows"]), ElementsAre(0, 2));
  EXPECT_THAT(numbers(data["phases"][0]["views"][0]["time"]), ElementsAre(30'000, 5'000, 25'000));
  EXPECT_THAT(numbers(data["phases"][0]["views"][2]["time"]), ElementsAre(20'000, 15'000));
}

TEST(PageData, NothingAndNumbersThatAreNoneAreZero) {
  EXPECT_TRUE(page_data(page_of({}))["phases"].empty());
  EXPECT_TRUE(page_data(page_of({{.name = "empty", .step_count = 1}}))["phases"][0]["depth"].empty());
  double nan = std::numeric_limits<double>::quiet_NaN(), infinity = std::numeric_limits<double>::infinity();
  ordered_json data = page_data(page_of({{.name = "p", .step_count = 1, .summary = {{"a", nan, 0, infinity, {}}, {"b", 1e15, 0, 0.5, {}}}}}));
  const ordered_json& view = data["phases"][0]["views"][0];
  EXPECT_EQ(view["time"][0], 0);
  EXPECT_EQ(view["calls"][0], 0);
  EXPECT_EQ(view["time"][1], 1e18);
  EXPECT_EQ(view["calls"][1], 0.5);
}

TEST(PageData, ContextIsFlatAndWithoutWhatLaminaKeepsThere) {
  Page page = page_of({});
  *page.ranks[0].report.context = {{"engine_args", {{"model", "m"}, {"none", nullptr}}}, {"batch_size", 4}, {"lamina", {{"x", 1}}}, {"list", {1, "\xff"}}};
  EXPECT_EQ(page_data(page)["context"].dump(-1, ' ', true, ordered_json::error_handler_t::replace),
            R"([["engine_args.model","m"],["batch_size","4"],["list","[1,\"\ufffd\"]"]])");
}

TEST(PageRows, TheHeaviestHaveTheirParents) {
  std::vector<Weight> rows = {{0, 1}, {1, 9}, {0, 5}, {1, 5}, {1, 2}};  // a child longer than its parent weighs as much as that
  EXPECT_EQ(choose_heaviest(rows, 2), Bools({false, false, true, true, false}));
  EXPECT_EQ(choose_heaviest(rows, 4), Bools({true, false, true, true, true}));
  EXPECT_EQ(choose_heaviest(rows, 5), Bools(5, true));
  EXPECT_EQ(choose_heaviest(rows, 0), Bools(5, false));
}

TEST(PageRows, SmallSizesAreMetInFull) {
  EXPECT_EQ(share_out({5, 100, 300}, 105), Sizes({5, 50, 50}));
  EXPECT_EQ(share_out({5, 100, 300}, 1000), Sizes({5, 100, 300}));
  EXPECT_EQ(share_out({}, 7), Sizes());
}

TEST(PageRows, ADeepTreeIsLaidOut) {
  std::vector<SummaryNode> tree = {{"leaf", 1, 1, 1, {}}};
  for (int depth = 0; depth < 400; ++depth) {
    SummaryNode parent{"node", 1, 1, 1, {}};
    parent.children = std::move(tree);
    tree.clear();
    tree.push_back(std::move(parent));
  }
  SummaryRows rows;
  rows.add(tree);
  EXPECT_EQ(rows.rows().size(), 401u);
  EXPECT_EQ(rows.rows().back().depth, 400u);
  EXPECT_EQ(rows.order().size(), 401u);
}

TEST(HtmlPage, HostileTextIsNoMarkup) {
  std::string json = script_json({"</script><!-- <b>", "\u2028\u2029", "\xff\xc3", std::string("\0\x01\x7f", 3)});
  EXPECT_THAT(json, Not(HasSubstr("<")));
  EXPECT_TRUE(std::ranges::all_of(json, [](char c) { return c >= 0x20 && c < 0x7f; })) << json;
  ordered_json back = ordered_json::parse(json);
  EXPECT_EQ(back[0], "</script><!-- <b>");
  EXPECT_EQ(back[1], "\u2028\u2029");
  EXPECT_EQ(back[2], "\ufffd\ufffd");
}

TEST(HtmlPage, IsOneFileWithTheDataInIt) {
  Page page = page_of({two_steps()});
  page.title = "</script><script>alert(1)</script>";
  std::string html = html_page(page);
  EXPECT_THAT(html, HasSubstr("\\u003c/script>\\u003cscript>alert(1)"));
  EXPECT_THAT(html, Not(HasSubstr("<script>alert(1)")));
  EXPECT_THAT(html, Not(HasSubstr(".js\"></script>")));
  EXPECT_THAT(html, Not(HasSubstr("<link rel=\"stylesheet\"")));
  EXPECT_THAT(html, Not(HasSubstr("http://")));
  EXPECT_THAT(html, Not(HasSubstr("https://")));
  EXPECT_LT(html.size(), 200'000u);
}

}  // namespace
}  // namespace lamina
