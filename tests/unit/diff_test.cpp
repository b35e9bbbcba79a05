#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "report/diff/changed_layers.h"
#include "report/diff/compare_reports.h"
#include "report/render/diff.h"
#include "report/tree/summarize.h"

namespace lamina {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

// ---- making of reports: layers with children, kernels with a time

SummaryNode kernel(const std::string& name, double us) { return {name, us, 0, 1, {}}; }

SummaryNode layer(const std::string& name, std::vector<SummaryNode> children) {
  SummaryNode node{name, 0, 0, 1, std::move(children)};
  for (const SummaryNode& child : node.children) node.cuda_time_us += child.cuda_time_us;
  return node;
}

using Rows = std::vector<SummaryNode>;

// Each argument is a step.
LayerReport report_of(const std::vector<Rows>& steps, const std::string& name = "decode") {
  PhaseReport phase{.name = name, .step_count = steps.size()};
  for (const Rows& rows : steps) {
    StepReport& step = phase.steps.emplace_back();
    step.number = static_cast<uint32_t>(phase.steps.size());
    step.summary = rows;
    add_summary(phase.summary, rows);
  }
  set_percentages(phase.summary);
  LayerReport report;
  report.phases.push_back(std::move(phase));
  return report;
}

// Steps of one kernel in one layer.
LayerReport times(const std::vector<double>& us) {
  std::vector<Rows> steps;
  for (double each : us) steps.push_back({layer("A", {kernel("k", each)})});
  return report_of(steps);
}

PhaseChange compare(const Rows& before, const Rows& after) {
  return compare_reports(report_of({before}), report_of({after})).phases.at(0);
}

// As in `renamed A->B(same k, swapped a+b->c)`.
std::string text_of(const std::vector<LayerChange>& rows) {
  std::string text;
  auto joined = [](const std::vector<std::string>& names) {
    std::string list;
    for (const std::string& name : names) list += (list.empty() ? "" : "+") + name;
    return list;
  };
  for (const LayerChange& row : rows) {
    text += (text.empty() ? "" : ", ") + std::string(name_of(row.fate())) + " ";
    bool two = row.fate() == Fate::kRenamed || row.fate() == Fate::kSwapped;
    text += two ? joined(row.names_before) + "->" + joined(row.names_after) : joined(row.names());
    if (!row.children.empty()) text += "(" + text_of(row.children) + ")";
  }
  return text;
}

std::string matched(const Rows& before, const Rows& after) { return text_of(compare(before, after).layers); }

// ---- matching

TEST(Diff, RowsOfTheSamePathAreTheSame) {
  Rows rows = {layer("M", {layer("A", {kernel("k", 1)}), layer("B", {kernel("k", 2)})}), layer("S", {kernel("s", 1)})};
  EXPECT_EQ(matched(rows, rows), "same M(same A(same k), same B(same k)), same S(same s)");
}

TEST(Diff, OrderDoesNotMatterToNames) {
  EXPECT_EQ(matched({layer("A", {}), layer("B", {}), layer("C", {})}, {layer("C", {}), layer("A", {}), layer("B", {})}),
            "same C, same A, same B");
}

TEST(Diff, AddedAndRemovedLayersStandInTheirPlaces) {
  EXPECT_EQ(matched({layer("A", {kernel("k", 1)}), layer("Old", {kernel("o", 1)}), layer("C", {kernel("k", 1)})},
                    {layer("A", {kernel("k", 1)}), layer("C", {kernel("k", 1)}), layer("New", {layer("In", {kernel("n", 1)})})}),
            "same A(same k), removed Old(removed o), same C(same k), added New(added In(added n))");
}

TEST(Diff, OtherParametersAreARename) {
  EXPECT_EQ(matched({layer("A", {}), layer("Linear(weight=bf16[4, 4])", {kernel("g", 1)}), layer("B", {})},
                    {layer("A", {}), layer("Linear(weight=fp8[4, 4])", {kernel("h", 1)}), layer("B", {})}),
            "same A, renamed Linear(weight=bf16[4, 4])->Linear(weight=fp8[4, 4])(swapped g->h), same B");
}

TEST(Diff, AnotherClassWithTheSameChildLayersIsARename) {
  EXPECT_EQ(matched({layer("OldMLP", {layer("Linear(w=1)", {kernel("a", 1)}), layer("Act", {kernel("b", 1)})})},
                    {layer("NewMLP", {layer("Linear(w=2)", {kernel("c", 1)}), layer("Act", {kernel("b", 1)})})}),
            "renamed OldMLP->NewMLP(renamed Linear(w=1)->Linear(w=2)(swapped a->c), same Act(same b))");
}

TEST(Diff, OtherClassesAllTheWayDownWithTheSameKernelsAreRenames) {
  EXPECT_EQ(matched({layer("Mistral", {layer("MistralMLP", {kernel("a", 1), kernel("b", 1)})})},
                    {layer("Llama", {layer("LlamaMLP", {kernel("a", 1), kernel("b", 1)})})}),
            "renamed Mistral->Llama(renamed MistralMLP->LlamaMLP(same a, same b))");
}

TEST(Diff, WithNothingInCommonItIsNoRename) {
  EXPECT_EQ(matched({layer("Old", {kernel("a", 1)})}, {layer("New", {kernel("b", 1)})}), "removed Old(removed a), added New(added b)");
}

TEST(Diff, InAnotherPlaceItIsNoRename) {
  EXPECT_EQ(matched({layer("Linear(w=1)", {kernel("a", 1)}), layer("B", {kernel("b", 1)})},
                    {layer("B", {kernel("b", 1)}), layer("Linear(w=2)", {kernel("a", 1)})}),
            "removed Linear(w=1)(removed a), same B(same b), added Linear(w=2)(added a)");
}

TEST(Diff, TwoLayersThatBecameOneAreNoRename) {
  EXPECT_EQ(matched({layer("Linear(w=1)", {kernel("a", 1)}), layer("Linear(w=2)", {kernel("b", 1)})},
                    {layer("Linear(w=3)", {kernel("c", 1)})}),
            "removed Linear(w=1)(removed a), removed Linear(w=2)(removed b), added Linear(w=3)(added c)");
}

TEST(Diff, AsManyAlikeArePairedInOrder) {
  EXPECT_EQ(matched({layer("L(1)", {kernel("a", 1)}), layer("L(2)", {kernel("b", 1)})},
                    {layer("L(3)", {kernel("a", 1)}), layer("L(4)", {kernel("b", 1)})}),
            "renamed L(1)->L(3)(same a), renamed L(2)->L(4)(same b)");
}

TEST(Diff, ALayerIsNeverAKernel) {
  EXPECT_EQ(matched({layer("A", {kernel("k", 1)})}, {kernel("f", 1)}), "removed A(removed k), added f");
}

// ---- kernels

TEST(Diff, KernelsInThePlaceOfOthersAreSwapped) {
  EXPECT_EQ(matched({layer("A", {kernel("a", 1), kernel("x", 1), kernel("b", 1)})},
                    {layer("A", {kernel("c", 1), kernel("x", 1), kernel("d", 1)})}),
            "same A(swapped a->c, same x, swapped b->d)");
  EXPECT_EQ(matched({layer("A", {kernel("a", 1), kernel("b", 1)})}, {layer("A", {kernel("c", 1), kernel("d", 1)})}),
            "same A(swapped a->c, swapped b->d)");
}

TEST(Diff, SeveralKernelsInThePlaceOfOneAreARow) {
  PhaseChange phase = compare({layer("A", {kernel("a", 1), kernel("b", 2), kernel("c", 4)})}, {layer("A", {kernel("f", 5)})});
  EXPECT_EQ(text_of(phase.layers), "same A(swapped a+b+c->f)");
  const LayerChange& row = phase.layers[0].children[0];
  EXPECT_TRUE(row.kernel);
  EXPECT_EQ(row.time.before.mean_us, 7);
  EXPECT_EQ(row.time.us(), -2);
}

TEST(Diff, KernelsWithNothingInTheirPlaceAreAddedAndRemoved) {
  EXPECT_EQ(matched({layer("A", {kernel("a", 1), kernel("x", 1)})}, {layer("A", {kernel("x", 1), kernel("b", 1)})}),
            "same A(removed a, same x, added b)");
}

// ---- times and noise

TEST(Diff, TimesAreOfAStep) {
  TimeChange change = compare_reports(times({10, 20}), times({16, 16, 16, 16})).phases.at(0).time;
  EXPECT_EQ(change.before.mean_us, 15);
  EXPECT_EQ(change.after.mean_us, 16);
  EXPECT_THAT(change.after.us, ElementsAre(16, 16, 16, 16));
  EXPECT_NEAR(*change.percent(), 6.667, 0.001);
}

TEST(Diff, StepsThatAreNotKeptCountInTheMean) {
  LayerReport before = times({10, 20});
  before.phases[0].steps.resize(1);
  TimeChange change = compare_reports(before, times({15, 15})).phases.at(0).time;
  EXPECT_EQ(change.before.mean_us, 15);
  EXPECT_FALSE(change.noise());
}

// By hand: variances 1 and 4 of three steps each, t of 2.94 degrees of freedom rounded down: 4.303 * sqrt(5 / 3).
TEST(Diff, NoiseOfOtherStepsIsWelchs) {
  StepTimes before{10, {9, 10, 11}}, after{20, {18, 20, 22}};
  EXPECT_NEAR(*noise_us(before, after, StepPairs::kOtherSteps), 5.555, 0.001);
}

// By hand: differences 9, 10, 11: 4.303 * 1 / sqrt(3).
TEST(Diff, NoiseOfTheSameStepsIsThatOfTheirDifferences) {
  StepTimes before{10, {9, 10, 11}}, after{20, {18, 20, 22}};
  EXPECT_NEAR(*noise_us(before, after, StepPairs::kSameSteps), 2.484, 0.001);
}

TEST(Diff, WhatGrowsOnBothSidesIsNoNoiseWhereStepsPair) {
  TimeChange same = compare_reports(times({10, 20, 30}), times({11, 21, 31})).phases.at(0).time;
  EXPECT_NEAR(*same.noise(), 0, 1e-9);
  EXPECT_FALSE(same.within_noise());
  TimeChange other = compare_reports(times({10, 20, 30}), times({11, 21, 31, 21})).phases.at(0).time;
  EXPECT_TRUE(other.within_noise());
}

TEST(Diff, ASingleStepGivesNoEstimate) {
  for (const auto& [a, b] : {std::pair(times({10}), times({11})), std::pair(times({10}), times({11, 12, 13}))}) {
    TimeChange change = compare_reports(a, b).phases.at(0).time;
    EXPECT_FALSE(change.noise());
    EXPECT_FALSE(change.within_noise());
  }
}

TEST(Diff, ManySteps) {
  std::vector<double> flat, noisy;
  for (int i = 0; i < 100; ++i) flat.push_back(100), noisy.push_back(i % 2 == 0 ? 99 : 103);
  EXPECT_NEAR(*noise_us({100, flat}, {101, noisy}, StepPairs::kSameSteps), 1.984 * 2.0101 / 10, 0.001);  // t of 99: 1.984
}

TEST(Diff, RowsThatAStepLacksTookNoTimeInIt) {
  PhaseChange phase = compare_reports(report_of({{layer("A", {kernel("k", 4)})}, {layer("A", {kernel("k", 4), kernel("rare", 2)})}}),
                                      report_of({{layer("A", {kernel("k", 4)})}, {layer("A", {kernel("k", 4)})}}))
                          .phases.at(0);
  const LayerChange& rare = phase.layers[0].children[1];
  EXPECT_EQ(rare.fate(), Fate::kRemoved);
  EXPECT_THAT(rare.time.before.us, ElementsAre(0, 2));
  EXPECT_THAT(rare.time.after.us, ElementsAre(0, 0));
  EXPECT_EQ(rare.time.us(), -1);
  EXPECT_TRUE(rare.time.within_noise());
}

// ---- sums

double sum_of_changes(const std::vector<LayerChange>& rows) {
  double sum = 0;
  for (const LayerChange& row : rows) sum += row.time.us();
  return sum;
}

const Rows kBefore = {layer("M", {kernel("own", 3), layer("Old(1)", {kernel("a", 1), kernel("b", 2)}), layer("B", {kernel("k", 5)})}),
                      layer("Gone", {kernel("g", 7)})};
const Rows kAfter = {layer("M", {kernel("own", 4), layer("Old(2)", {kernel("c", 9)}), layer("B", {kernel("k", 4)})}),
                     layer("(no module)", {kernel("n", 20)})};

TEST(Diff, ChildrenAddUpToTheirParentAndRootsToThePhase) {
  PhaseChange phase = compare(kBefore, kAfter);
  EXPECT_NEAR(sum_of_changes(phase.layers), phase.time.us(), 1e-9);
  for (const LayerChange& row : phase.layers) EXPECT_NEAR(sum_of_changes(row.children), row.time.us(), 1e-9) << row.names()[0];
}

TEST(Diff, SharesAddUp) {
  ReportChange change = compare_reports(report_of({kBefore}), report_of({kAfter}));
  nlohmann::ordered_json json = diff_json(change, "a", "b");
  double sum = 0;
  for (const auto& row : json["phases"][0]["layers"]) {
    double children = 0;
    for (const auto& child : row["children"]) children += child["share_pct"].get<double>();
    EXPECT_NEAR(children, row["share_pct"].get<double>(), 1e-9);
    sum += row["share_pct"].get<double>();
  }
  EXPECT_NEAR(sum, 100, 1e-9);
}

TEST(Diff, TheListHasEachKernelOnce) {
  PhaseChange phase = compare(kBefore, kAfter);
  double sum = 0;
  std::vector<std::string> names;
  for (const ChangedLayer& row : changed_layers(phase)) {
    sum += row.time.us();
    names.push_back(row.layer().names().front());
  }
  EXPECT_NEAR(sum, phase.time.us(), 1e-9);
  EXPECT_THAT(names, ElementsAre("(no module)", "Gone", "Old(2)", "M", "B"));  // by the size of the change
}

TEST(Diff, TheListNamesKernelsThatDiffer) {
  PhaseChange phase = compare(kBefore, kAfter);
  std::vector<ChangedLayer> rows = changed_layers(phase);
  ASSERT_EQ(rows[2].kernels.size(), 1u);
  EXPECT_EQ(rows[2].kernels[0]->fate(), Fate::kSwapped);
  EXPECT_THAT(rows[2].path[1]->names(), ElementsAre("M"));
  EXPECT_THAT(rows[0].kernels, IsEmpty());  // of an added layer all kernels are new
}

TEST(Diff, WhatIsBeyondTheNoiseComesFirst) {
  auto step = [](double noisy, double steady) { return Rows{layer("N", {kernel("n", noisy)}), layer("S", {kernel("s", steady)})}; };
  PhaseChange phase = compare_reports(report_of({step(10, 5), step(50, 5), step(30, 5)}),
                                      report_of({step(60, 6), step(10, 6), step(50, 6)}))
                          .phases.at(0);
  std::vector<ChangedLayer> rows = changed_layers(phase);
  EXPECT_EQ(rows[0].layer().names()[0], "S");
  EXPECT_TRUE(rows[1].time.within_noise());
}

// ---- phases, contexts

TEST(Diff, PhasesOfOneReportAloneAreThere) {
  LayerReport before = report_of({{layer("A", {kernel("k", 1)})}}, "prefill");
  LayerReport after = report_of({{layer("A", {kernel("k", 1)})}}, "decode");
  ReportChange change = compare_reports(before, after);
  ASSERT_EQ(change.phases.size(), 2u);
  EXPECT_EQ(change.phases[0].name, "prefill");
  EXPECT_FALSE(change.phases[0].in_both());
  EXPECT_EQ(change.phases[1].steps_after, 1u);
  EXPECT_THAT(slower_phases(change, 0), IsEmpty());
  EXPECT_THAT(diff_text(change, {"a", "b"}), HasSubstr("== decode: only after: 1 step, 1.00 us a step\n"));
}

TEST(Diff, NothingIsNoReasonToFail) {
  EXPECT_THAT(compare_reports({}, {}).phases, IsEmpty());
  Rows idle = {layer("A", {layer("B", {})})};
  ReportChange change = compare_reports(report_of({idle, idle}), report_of({idle, idle}));
  EXPECT_EQ(diff_json(change, "a", "b")["phases"][0]["layers"][0]["share_pct"], 0);
  EXPECT_EQ(diff_json(change, "a", "b")["phases"][0]["change_pct"], 0);
  EXPECT_THAT(diff_text(change, {"a", "b", true}), Not(HasSubstr("nan")));
  EXPECT_THAT(slower_phases(change, 0), IsEmpty());
}

TEST(Diff, ADeepTreeIsCompared) {
  Rows before = {kernel("a", 1)}, after = {kernel("b", 2)};
  for (int depth = 0; depth < 400; ++depth) {
    before = {layer("L" + std::to_string(depth) + "(1)", std::move(before))};
    after = {layer("L" + std::to_string(depth) + "(2)", std::move(after))};
  }
  ReportChange change = compare_reports(report_of({before}), report_of({after}));
  EXPECT_EQ(changed_layers(change.phases.at(0)).at(0).path.size(), 400u);
  EXPECT_FALSE(diff_text(change, {"a", "b", true}).empty());
}

TEST(Diff, ContextsOfBothShapesAreCompared) {
  LayerReport flat, nested;
  *flat.context = {{"model", "toy"}, {"dtype", "auto"}, {"batch_size", 4}, {"prompt_len", 512}, {"cuda_devices", "[]"}};
  *nested.context = {{"engine_args", {{"model", "toy"}, {"dtype", "float16"}}},
                    {"batch_size", 8},
                    {"cuda_devices", "[_CudaDeviceProperties(name='NVIDIA H200', major=9), _CudaDeviceProperties(name='NVIDIA H200', major=9)]"}};
  std::vector<std::string> told;
  for (const ContextDifference& fact : compare_contexts(flat, nested)) {
    told.push_back(fact.name + " " + fact.before.value_or("?") + " " + fact.after.value_or("?"));
  }
  // prompt_len, which one of them does not know, is no difference.
  EXPECT_THAT(told, ElementsAre("dtype auto float16", "batch_size 4 8", "GPU ? 2 x NVIDIA H200"));
}

TEST(Diff, SequencesOfAStepAreContextToo) {
  LayerReport before = times({1, 1}), after = times({1, 1});
  for (StepReport& step : before.phases[0].steps) (*step.metadata)["num_running_seqs"] = 4;
  for (StepReport& step : after.phases[0].steps) (*step.metadata)["num_running_seqs"] = step.number;
  std::vector<ContextDifference> facts = compare_contexts(before, after);
  ASSERT_EQ(facts.size(), 1u);
  EXPECT_EQ(facts[0].name, "sequences a step in decode");
  EXPECT_EQ(facts[0].before, "4");
  EXPECT_EQ(facts[0].after, "1 to 2");
}

// ---- limits

TEST(Diff, SlowerIsWhatIsBeyondLimitAndNoise) {
  ReportChange steady = compare_reports(times({100, 100}), times({106, 106}));
  ASSERT_EQ(slower_phases(steady, 5).size(), 1u);
  EXPECT_NEAR(slower_phases(steady, 5)[0].percent, 6, 1e-9);
  EXPECT_THAT(slower_phases(steady, 7), IsEmpty());
  EXPECT_THAT(slower_phases(compare_reports(times({106}), times({100})), 0), IsEmpty());
  ReportChange noisy = compare_reports(times({100, 100}), times({104, 108}));  // noise: 12.706 * 2
  EXPECT_THAT(slower_phases(noisy, 5), IsEmpty());
  EXPECT_FALSE(slower_phases(compare_reports(times({100}), times({106})), 5).at(0).noise_percent);
}

TEST(Diff, LimitsAreForNamedPhasesWhereThereAreAny) {
  LayerReport before = times({100, 100}), after = times({90, 90});
  for (auto [report, us] : {std::pair(&before, 1.0), std::pair(&after, 9.0)}) {
    report->phases.insert(report->phases.begin(), report_of({{layer("A", {kernel("k", us)})}}, "startup").phases[0]);
  }
  EXPECT_THAT(slower_phases(compare_reports(before, after), 5), IsEmpty());
  before.phases.pop_back();
  after.phases.pop_back();
  EXPECT_EQ(slower_phases(compare_reports(before, after), 5).size(), 1u);
}

TEST(Diff, LayersHaveLimitsOfTheirOwn) {
  ReportChange change = compare_reports(report_of({{layer("M", {layer("A", {kernel("k", 10)}), layer("B", {kernel("k", 90)})})}}),
                                        report_of({{layer("M", {layer("A", {kernel("k", 20)}), layer("B", {kernel("k", 80)})})}}));
  EXPECT_THAT(slower_phases(change, 5), IsEmpty());
  std::vector<Slower> layers = slower_layers(change, 5);
  ASSERT_EQ(layers.size(), 1u);
  EXPECT_EQ(layers[0].name, "decode > M > A");
}

// ---- text

TEST(Diff, TextTellsRenamesSwapsAndNoise) {
  std::string text = diff_text(compare_reports(report_of({kBefore, kBefore}), report_of({kAfter, kAfter})), {"one", "two"});
  EXPECT_THAT(text, HasSubstr("before: one\nafter:  two\n"));
  EXPECT_THAT(text, HasSubstr("| renamed from Old(1)\n"));
  EXPECT_THAT(text, HasSubstr("| kernel a + b -> c\n"));
  EXPECT_THAT(text, HasSubstr("| removed\n"));
  EXPECT_THAT(text, HasSubstr("| added\n"));
  EXPECT_THAT(text, HasSubstr("Old(2) <- M "));
}

TEST(Diff, TextTellsRenamesOfLayersWithoutKernelsOfTheirOwn) {
  LayerReport before = report_of({{layer("OldMLP", {layer("Act", {kernel("k", 1)})})}});
  LayerReport after = report_of({{layer("NewMLP", {layer("Act", {kernel("k", 1)})})}});
  EXPECT_THAT(diff_text(compare_reports(before, after), {"a", "b"}), HasSubstr("\nNewMLP: renamed from OldMLP\n"));
}

TEST(Diff, HostileNamesStayOnTheirLine) {
  ReportChange change = compare_reports(report_of({{layer("A\n\x1b[31m\xff(1)", {kernel("k\r", 1)})}}, "p\n"),
                                        report_of({{layer("A\n\x1b[31m\xff(2)", {kernel("l\t" + std::string(9000, 'x'), 1)})}}, "p\n"));
  std::string text = diff_text(change, {"a\n", "b", true});
  EXPECT_THAT(text, Not(testing::ContainsRegex("[\r\t\x1b\xff]")));
  EXPECT_EQ(std::ranges::count(text, '\n'), 2 + 1 + 1 + 2 + 2);
  EXPECT_THAT(diff_json(change, "a", "b").dump(-1, ' ', false, nlohmann::json::error_handler_t::replace), HasSubstr("A\\n"));
}

TEST(Diff, LongListsEndWithTheRest) {
  Rows before, after;
  for (int i = 0; i < 300; ++i) {
    before.push_back(layer("L" + std::to_string(i) + "x", {kernel("k", 1)}));
    after.push_back(layer("L" + std::to_string(i) + "x", {kernel("k", 2)}));
  }
  std::string text = diff_text(compare_reports(report_of({before}), report_of({after})), {"a", "b"});
  EXPECT_THAT(text, HasSubstr("(280 more layers)"));
  EXPECT_THAT(text, HasSubstr("|     280.00 |     560.00 |    +280.00 | +100.00% |    93.3% |"));
}

}  // namespace
}  // namespace lamina
