// Whether a figure can be read: where its texts and boxes are, and that no text is over another.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <string>
#include <vector>

#include "report/plot/figure.h"

namespace lamina {

using Corners = std::array<std::array<double, 2>, 4>;

// As wide as DejaVu Sans at its widest use; the real fonts are narrower.
inline double text_width(std::string_view text, double size, bool bold) {
  auto characters = std::ranges::count_if(text, [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; });
  return static_cast<double>(characters) * size * (bold ? 0.66 : 0.6);
}

// From below the baseline to the top of capitals, turned about the anchor.
inline Corners corners(const FigureText& text) {
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

inline Corners corners(const FigureBox& box) {
  return {{{box.x, box.y}, {box.x + box.width, box.y}, {box.x + box.width, box.y + box.height}, {box.x, box.y + box.height}}};
}

// Rectangles are apart when a side of one of them separates them.
inline bool apart_by_a_side(const Corners& a, const Corners& b) {
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

inline double diagonal(const Corners& c) { return std::hypot(c[2][0] - c[0][0], c[2][1] - c[0][1]); }

inline bool overlap(const Corners& a, const Corners& b) {
  if (std::hypot(a[0][0] - b[0][0], a[0][1] - b[0][1]) > diagonal(a) + diagonal(b)) return false;  // most pairs, in no time
  return !apart_by_a_side(a, b) && !apart_by_a_side(b, a);
}

inline void expect_readable(const Figure& figure, const std::string& which) {
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

inline std::vector<std::string> texts_of(const Figure& figure) {
  std::vector<std::string> result;
  for (const FigureText& text : figure.texts) result.push_back(text.text);
  return result;
}

}  // namespace lamina
