// The figure of `lamina diff --plot`: what it shows, and that its texts can be read whatever changed.
#include "report/plot/change_chart.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "figure_geometry.h"
#include "report/tree/summarize.h"

namespace lamina {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::IsSupersetOf;
using testing::Not;

const std::string kLong(500, 'w');

ChangePanel panel_of(size_t bars, double factor = 1, const std::string& label = "layer") {
  ChangePanel panel{"decode, 8 steps", "8494 → 8530 µs per step: +35.4 µs (+0.42%), noise ±2.41 µs", {}};
  for (size_t i = 0; i < bars; ++i) {
    double us = factor * (i % 3 == 1 ? -1 : 1) * 100 / static_cast<double>(i + 1);
    panel.bars.push_back({.label = label + std::to_string(i), .us = us, .percent = us * 2, .within_noise = i > 8});
    if (i % 2 == 0) panel.bars.back().noise_us = factor * 7;
    if (i % 4 == 0) panel.bars.back().note = "added";
    if (i % 4 == 1) panel.bars.back().note = "renamed from";
    if (i % 4 == 1) panel.bars.back().old_name = kLong;
  }
  return panel;
}

Figure figure_of(std::vector<ChangePanel> panels) { return layout_changes({"before → after: GPU time by layer", "", std::move(panels)}, text_width); }

TEST(ChangeChart, NoTextOverlaps) {
  for (size_t panels : {0, 1, 2, 3, 4, 12}) {
    for (size_t bars : {0, 1, 2, 12, 13}) {
      std::string which = std::to_string(panels) + " panels of " + std::to_string(bars) + " bars: ";
      expect_readable(figure_of(std::vector<ChangePanel>(panels, panel_of(bars))), which);
    }
  }
}

TEST(ChangeChart, NorWithPanelsOfDifferentHeight) { expect_readable(figure_of({panel_of(1), panel_of(13), panel_of(3), panel_of(0), panel_of(2)}), ""); }

TEST(ChangeChart, NorWithLongNames) {
  for (size_t panels : {1, 2}) {
    for (size_t bars : {1, 2, 13}) {
      ChangePanel panel = panel_of(bars, 1, kLong);
      panel.title = panel.subtitle = kLong;
      ChangeChart chart{kLong, kLong, std::vector<ChangePanel>(panels, panel)};
      expect_readable(layout_changes(chart, text_width), std::to_string(panels) + " panels of " + std::to_string(bars) + " bars: ");
    }
  }
}

TEST(ChangeChart, NorWithChangesOfAnySizeAndDirection) {
  for (double factor : {0.0, 1e-6, 1e-3, 1.0, -1.0, 1e3, 1e6, -1e9}) {
    for (size_t panels : {1, 2}) {
      expect_readable(figure_of(std::vector<ChangePanel>(panels, panel_of(13, factor))), "times " + std::to_string(factor) + ": ");
    }
  }
  for (double sign : {1.0, -1.0}) {
    ChangePanel panel = panel_of(12);
    for (ChangeBar& bar : panel.bars) bar.us = sign * std::abs(bar.us);
    expect_readable(figure_of({panel, panel}), "all of one direction: ");
  }
}

// The bars of a figure: neither the legend's boxes nor error bars nor what is behind values.
std::vector<FigureBox> bars_of(const Figure& figure) {
  std::vector<FigureBox> bars;
  for (const FigureBox& box : figure.boxes) {
    if (box.height > 14 && !(box.look.colour == Colour{0xff, 0xff, 0xff})) bars.push_back(box);
  }
  return bars;
}

TEST(ChangeChart, BarsAreToScaleOnBothSidesOfZero) {
  ChangePanel panel{"p", "", {{.label = "a", .us = -60}, {.label = "b", .us = 30}, {.label = "c", .us = -10, .within_noise = true}}};
  Figure figure = figure_of({panel});
  auto bars = bars_of(figure);
  ASSERT_EQ(bars.size(), 3u);
  double zero = bars[1].x;
  EXPECT_NEAR(bars[0].x + bars[0].width, zero, 1e-6);
  EXPECT_NEAR(bars[2].x + bars[2].width, zero, 1e-6);
  EXPECT_NEAR(bars[0].width, 2 * bars[1].width, 1e-6);
  EXPECT_NEAR(bars[0].width, 6 * bars[2].width, 1e-6);
  EXPECT_FALSE(bars[0].look == bars[1].look);
  EXPECT_FALSE(bars[0].look == bars[2].look);
  EXPECT_EQ(bars[2].look.texture, Texture::kRising);
  auto is_zero = [&](const FigureLine& line) { return line.x1 == zero && line.x2 == zero && line.colour == Colour{0x22, 0x22, 0x22}; };
  EXPECT_TRUE(std::ranges::any_of(figure.lines, is_zero));
}

// Widths of the error bars, without their caps and without that of the legend.
std::vector<double> error_bars(const Figure& figure) {
  std::vector<double> widths;
  for (const FigureBox& box : figure.boxes) {
    if (box.height < 2 && box.width > 2) widths.push_back(box.width);
  }
  if (!widths.empty()) widths.pop_back();
  return widths;
}

TEST(ChangeChart, NoiseIsAnErrorBarToScale) {
  Figure figure = figure_of({{"p", "", {{.label = "a", .us = 40, .noise_us = 10}, {.label = "b", .us = 20}}}});
  auto bars = bars_of(figure);
  ASSERT_EQ(error_bars(figure).size(), 1u);
  EXPECT_NEAR(error_bars(figure)[0], bars[0].width / 2, 1e-6);
}

TEST(ChangeChart, NoiseThatWouldHideAllChangesIsCutAndTheLegendSaysSo) {
  Figure figure = figure_of({{"p", "", {{.label = "a", .us = 40, .noise_us = 1}, {.label = "b", .us = 1, .noise_us = 5000, .within_noise = true}}}});
  EXPECT_NEAR(error_bars(figure).at(1), 3 * bars_of(figure)[0].width, 1e-6);
  EXPECT_THAT(texts_of(figure), Contains(HasSubstr("wider where the ends are open")));
  EXPECT_THAT(texts_of(figure_of({panel_of(2)})), Not(Contains(HasSubstr("wider"))));
}

TEST(ChangeChart, ShowsValuesPercentNotesAndUnit) {
  ChangePanel panel{"decode", "S", {{.label = "a", .us = 6.52, .percent = 1.86}, {.label = "b", .note = "added", .us = 7}, {.label = "c", .us = -0.001, .percent = -0.001}}};
  panel.bars.push_back({.label = "d", .note = "renamed from", .old_name = "e", .us = -89.68, .percent = -44.72});
  EXPECT_THAT(texts_of(figure_of({panel})), IsSupersetOf({"decode", "S", "a", "+6.52 (+1.86%)", "b", "added", "+7.00", "c", "0", "d", "renamed from e",
                                                          "-89.7 (-44.7%)", "change of GPU time per step (µs)", "slower", "faster"}));
}

// ---- from a comparison

SummaryNode layer(const std::string& name, double us) { return {name, us, 0, 1, {{"kernel", us, 0, 1, {}}}}; }

PhaseReport phase_of(const std::string& name, const std::vector<SummaryNode>& rows) {
  PhaseReport phase{.name = name, .step_count = 1};
  StepReport& step = phase.steps.emplace_back();
  step.number = 1;
  step.summary = rows;
  add_summary(phase.summary, rows);
  set_percentages(phase.summary);
  return phase;
}

ChangeChart chart_of(std::vector<PhaseReport> before, std::vector<PhaseReport> after, std::vector<std::string>* messages = nullptr) {
  LayerReport reports[2];
  reports[0].phases = std::move(before);
  reports[1].phases = std::move(after);
  std::vector<std::string> told;
  return make_change_chart(compare_reports(reports[0], reports[1]), "runs/a", "runs/b/", messages ? *messages : told);
}

std::vector<std::string> labels_of(const ChangePanel& panel) {
  std::vector<std::string> labels;
  for (const ChangeBar& bar : panel.bars) labels.push_back(bar.note.empty() ? bar.label : bar.label + ": " + bar.note + (bar.old_name.empty() ? "" : " " + bar.old_name));
  return labels;
}

TEST(ChangeChart, HasTheRowsOfTheTextInItsOrder) {
  ChangeChart chart = chart_of({phase_of("decode", {layer("A", 10), layer("B", 20), layer("L(weight=bf16)", 5), layer("Gone", 1), layer("Z", 3)})},
                               {phase_of("decode", {layer("A", 12), layer("B", 11), layer("L(weight=fp8)", 2), layer("Z", 3), layer("New", 4)})});
  EXPECT_EQ(chart.title, "a → b: GPU time by layer");
  ASSERT_EQ(chart.panels.size(), 1u);
  EXPECT_THAT(labels_of(chart.panels[0]), ElementsAre("B", "New: added", "L(weight=fp8): was (weight=bf16)", "A", "Gone: removed", "Z"));
  EXPECT_EQ(chart.panels[0].bars[0].us, -9);
  EXPECT_EQ(chart.panels[0].title, "decode, 1 step");
  EXPECT_EQ(chart.panels[0].subtitle, "39.0 → 32.0 µs per step: -7.00 µs (-17.9%), noise not known");
}

TEST(ChangeChart, SumsUpWhatIsBeyondADozen) {
  for (size_t layers : {13, 14, 40}) {
    std::vector<SummaryNode> before, after;
    for (size_t i = 0; i < layers; ++i) {
      before.push_back(layer("L" + std::to_string(i), 100));
      after.push_back(layer("L" + std::to_string(i), 200 - static_cast<double>(i)));
    }
    ChangeChart chart = chart_of({phase_of("decode", before)}, {phase_of("decode", after)});
    const std::vector<ChangeBar>& bars = chart.panels.at(0).bars;
    ASSERT_EQ(bars.size(), 13u);
    EXPECT_EQ(bars[12].label, layers == 13 ? "L12" : "others (" + std::to_string(layers - 12) + " layers)");
    double sum = 0;
    for (const ChangeBar& bar : bars) sum += bar.us;
    EXPECT_NEAR(sum, static_cast<double>(layers) * 100 - static_cast<double>(layers * (layers - 1)) / 2, 1e-6);
  }
}

TEST(ChangeChart, HasThePhasesOfBothThatTheProgramNamed) {
  std::vector<SummaryNode> rows = {layer("A", 1)};
  auto titles = [](const ChangeChart& chart) {
    std::vector<std::string> texts;
    for (const ChangePanel& panel : chart.panels) texts.push_back(panel.title);
    return texts;
  };
  EXPECT_THAT(titles(chart_of({phase_of("startup", rows), phase_of("prefill", rows), phase_of("old", rows)}, {phase_of("startup", rows), phase_of("prefill", rows)})),
              ElementsAre("prefill, 1 step"));
  EXPECT_THAT(titles(chart_of({phase_of("startup", rows)}, {phase_of("startup", rows)})), ElementsAre("startup, 1 step"));
}

TEST(ChangeChart, SaysThatThereAreMorePhases) {
  std::vector<PhaseReport> phases;
  for (size_t i = 0; i < 13; ++i) phases.push_back(phase_of("p" + std::to_string(i), {layer("A", 1)}));
  std::vector<std::string> messages;
  EXPECT_EQ(chart_of(phases, phases, &messages).panels.size(), 12u);
  EXPECT_THAT(messages, ElementsAre("the figure has the first 12 of 13 phases: choose one with --phase"));
  phases.pop_back();
  messages.clear();
  chart_of(phases, phases, &messages);
  EXPECT_THAT(messages, IsEmpty());
}

}  // namespace
}  // namespace lamina
