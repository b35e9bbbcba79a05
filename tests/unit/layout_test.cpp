// Where everything of a figure stands: no text over another, none outside, whatever the number of bars and names.
#include "report/plot/layout.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

namespace lamina {
namespace {

using Corners = std::array<std::array<double, 2>, 4>;

// As wide as DejaVu Sans at its widest use; the real fonts are narrower.
double text_width(std::string_view text, double size, bool bold) {
  auto characters = std::ranges::count_if(text, [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; });
  return static_cast<double>(characters) * size * (bold ? 0.66 : 0.6);
}

const std::vector<PlotMetric> kBoth = {PlotMetric::kMilliseconds, PlotMetric::kPercent};

// From below the baseline to the top of capitals, turned about the anchor.
Corners corners(const FigureText& text) {
  double width = text_width(text.text, text.size, text.bold);
  double left = text.anchor == Anchor::kStart ? 0 : text.anchor == Anchor::kMiddle ? -width / 2 : -width;
  double angle = -text.angle * std::numbers::pi / 180;
  Corners result;
  const Corners straight = {{{left, -0.75 * text.size}, {left + width, -0.75 * text.size}, {left + width, 0.2 * text.size}, {left, 0.2 * text.size}}};
  for (size_t i = 0; i < 4; ++i) {
    auto [x, y] = straight[i];
    result[i] = {text.x + x * std::cos(angle) - y * std::sin(angle), text.y + x * std::sin(angle) + y * std::cos(angle)};
  }
  return result;
}

Corners corners(const FigureBox& box) {
  return {{{box.x, box.y}, {box.x + box.width, box.y}, {box.x + box.width, box.y + box.height}, {box.x, box.y + box.height}}};
}

// Rectangles are apart when a side of one of them separates them.
bool apart_by_a_side(const Corners& a, const Corners& b) {
  for (size_t i = 0; i < 2; ++i) {
    double x = a[i + 1][0] - a[i][0];
    double y = a[i + 1][1] - a[i][1];
    auto range = [&](const Corners& c) {
      std::array<double, 2> result = {1e9, -1e9};
      for (auto [cx, cy] : c) result = {std::min(result[0], cx * x + cy * y), std::max(result[1], cx * x + cy * y)};
      return result;
    };
    auto [low_a, high_a] = range(a);
    auto [low_b, high_b] = range(b);
    if (high_a <= low_b + 1e-6 || high_b <= low_a + 1e-6) return true;
  }
  return false;
}

double diagonal(const Corners& c) { return std::hypot(c[2][0] - c[0][0], c[2][1] - c[0][1]); }

bool overlap(const Corners& a, const Corners& b) {
  if (std::hypot(a[0][0] - b[0][0], a[0][1] - b[0][1]) > diagonal(a) + diagonal(b)) return false;  // most pairs, in no time
  return !apart_by_a_side(a, b) && !apart_by_a_side(b, a);
}

void expect_readable(const Figure& figure, const std::string& which) {
  std::vector<Corners> all;
  for (const FigureText& text : figure.texts) {
    all.push_back(corners(text));
    EXPECT_GE(text.size, 8) << which << text.text;
    for (auto [x, y] : all.back()) {
      EXPECT_TRUE(x >= 0 && x <= figure.width && y >= 0 && y <= figure.height) << which << text.text << " at " << x << ", " << y;
    }
  }
  for (size_t i = 0; i < all.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      EXPECT_FALSE(overlap(all[i], all[j])) << which << figure.texts[i].text << " over " << figure.texts[j].text;
    }
  }
}

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

std::vector<std::string> texts_of(const Figure& figure) {
  std::vector<std::string> result;
  for (const FigureText& text : figure.texts) result.push_back(text.text);
  return result;
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
