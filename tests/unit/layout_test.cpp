// Where everything of a figure stands: no text over another, none outside, whatever the number of bars and names.
#include "report/plot/layout.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "report/plot/parts.h"
#include "figure_geometry.h"

namespace lamina {
namespace {

const std::vector<PlotMetric> kBoth = {PlotMetric::kMilliseconds, PlotMetric::kPercent};

// Totals, labels and names stand beside the boxes, values inside of theirs.
void expect_texts_in_or_out_of_boxes(const Figure& figure, const std::string& which) {
  for (const FigureText& text : figure.texts) {
    Corners place = corners(text);
    for (const FigureBox& box : figure.boxes) {
      if (!overlap(place, corners(box))) continue;
      bool inside = text.x > box.x && text.x < box.x + box.width && text.y > box.y && text.y < box.y + box.height + 1;
      EXPECT_TRUE(inside || text.x == box.x + box.width / 2) << which << text.text;
    }
  }
}

BarChart chart_of(size_t bars, size_t names, const std::string& label = "decode_{}-seqs-32", const std::string& name = "Linear(weight=bfloat16[{}, 4096])") {
  auto numbered = [](std::string text, size_t number) {
    if (size_t at = text.find("{}"); at != text.npos) text.replace(at, 2, std::to_string(number));
    return text;
  };
  BarChart chart{.title = "a model: GPU time by module", .subtitle = "batch size 4"};
  for (size_t i = 0; i < names; ++i) chart.names.push_back(numbered(name, i));
  for (size_t b = 0; b < bars; ++b) {
    Bar bar{.label = b == 0 ? "prefill" : numbered(label, b), .group = b == 0 ? "prefill" : "decode"};
    for (size_t i = 0; i < names; ++i) bar.us.push_back((b == 0 ? 20000.0 : 1000.0) * (1 + static_cast<double>((b + i) % 7)) / static_cast<double>(i + 1));
    for (double us : bar.us) bar.total_us += us;
    chart.bars.push_back(std::move(bar));
  }
  return chart;
}

TEST(Layout, NoTextOverlaps) {
  for (size_t bars : {1, 2, 3, 5, 9, 20, 33, 60, 150, 700}) {
    for (size_t names : {0, 1, 3, 9, 49}) {
      if (bars > 60 && names != 9) continue;
      std::string which = std::to_string(bars) + " bars, " + std::to_string(names) + " names: ";
      Figure figure = layout_chart(chart_of(bars, names), kBoth, text_width);
      expect_readable(figure, which);
      expect_texts_in_or_out_of_boxes(figure, which);
    }
  }
}

TEST(Layout, NorWithOnePanel) {
  for (PlotMetric metric : kBoth) {
    for (size_t bars : {1, 5, 20, 60}) expect_readable(layout_chart(chart_of(bars, 9), {metric}, text_width), std::to_string(bars) + " bars: ");
  }
}

TEST(Layout, NorWithLongNames) {
  std::string words(500, 'w');
  for (size_t bars : {1, 2, 20, 60}) {
    BarChart chart = chart_of(bars, 9, "a phase with a very long name indeed, and a number {}, and more", words + "{}" + words);
    chart.title = words;
    chart.subtitle = words;
    chart.bars[0].label = words;
    expect_readable(layout_chart(chart, kBoth, text_width), std::to_string(bars) + " bars: ");
  }
}

TEST(Layout, NorWithNumbersOfAnySize) {
  for (double factor : {0.0, 1e-6, 1e-3, 1.0, 1e3, 1e6, 1e9}) {
    for (size_t bars : {1, 9, 60}) {
      BarChart chart = chart_of(bars, 9);
      for (Bar& bar : chart.bars) {
        for (double& us : bar.us) us *= factor;
        bar.total_us *= factor;
      }
      expect_readable(layout_chart(chart, kBoth, text_width), std::to_string(bars) + " bars, times " + std::to_string(factor) + ": ");
    }
  }
}

TEST(Layout, ShowsTotalsValuesNamesAndAxes) {
  BarChart chart{.title = "T", .subtitle = "S", .names = {"a", "b"}};
  chart.bars = {{"prefill", "prefill", 4000, {3000, 1000}}, {"decode_1", "decode", 2000, {500, 1500}}};
  EXPECT_THAT(texts_of(layout_chart(chart, kBoth, text_width)),
              testing::IsSupersetOf({"T", "S", "a", "b", "prefill", "decode_1", "4.00", "3.00", "1.00", "2.00", "0.500", "1.50", "75.0", "25.0", "100",
                                     "GPU time (ms)", "share of GPU time (%)"}));
}

TEST(Layout, EveryOf60BarsHasItsTotalAndTheLastItsLabel) {
  auto texts = texts_of(layout_chart(chart_of(60, 9), {PlotMetric::kMilliseconds}, text_width));
  EXPECT_THAT(texts, testing::IsSupersetOf({"prefill", "decode_59-seqs-32"}));
  size_t totals = 0;
  for (const FigureText& text : layout_chart(chart_of(60, 9), {PlotMetric::kMilliseconds}, text_width).texts) totals += text.angle == 90 && text.bold;
  EXPECT_EQ(totals, 60u);
}

TEST(Layout, SegmentsAreStackedToScale) {
  BarChart chart{.title = "T", .names = {"a", "b"}};
  chart.bars = {{"x", "x", 4000, {3000, 1000}}};
  Figure figure = layout_chart(chart, {PlotMetric::kPercent}, text_width);
  const FigureBox& low = figure.boxes.at(2);  // behind the legend's
  const FigureBox& high = figure.boxes.at(3);
  EXPECT_NEAR(low.height / high.height, 3, 0.05);
  EXPECT_NEAR(high.y + high.height, low.y, 1);
  EXPECT_FALSE(low.look == high.look);
}

TEST(Layout, ShareOfNothingIsNone) {
  BarChart chart{.title = "T", .names = {}};
  chart.bars = {{"x", "x", 0, {}}, {"y", "y", 0, {}}};
  for (const std::string& text : texts_of(layout_chart(chart, kBoth, text_width))) EXPECT_EQ(text.find("nan"), text.npos) << text;
}

TEST(Values, HaveThreeDigits) {
  EXPECT_EQ(format_value(0), "0");
  EXPECT_EQ(format_value(std::nan("")), "0");
  EXPECT_EQ(format_value(1234.5), "1234");
  EXPECT_EQ(format_value(99.999999), "100");
  EXPECT_EQ(format_value(99.94), "99.9");
  EXPECT_EQ(format_value(9.996), "10.0");
  EXPECT_EQ(format_value(1), "1.00");
  EXPECT_EQ(format_value(0.0123456), "0.0123");
}

}  // namespace
}  // namespace lamina
