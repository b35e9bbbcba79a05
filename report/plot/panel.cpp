#include "report/plot/panel.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "report/format.h"
#include "report/names/shorten.h"

namespace lamina {
namespace {

constexpr double kTickSize = 10.5;
constexpr double kAxisTitleSize = 12;
constexpr double kTickDistance = 30;
constexpr double kTickGap = 7;           // between numbers and bars
constexpr double kMostTicks = 16;        // on an axis of a slide's height
constexpr double kMinAxisWidth = 62;
constexpr double kMaxBarWidth = 120;
constexpr double kBarShare = 0.76;       // of the pitch; the rest is white
constexpr double kCrowdedPitch = 5;      // below it bars leave no room
constexpr double kLineHeight = 1.2;      // of a text, by its size
constexpr double kUprightSize = 8.5;     // of totals
constexpr double kDigitHeight = 1.04;    // of a line that holds digits alone, by its size
constexpr double kSlant = 45;            // degrees
constexpr double kSlope = 0.70710678;    // its sine and cosine
constexpr double kMaxLabelWidth = 130;   // slanted
constexpr double kFigureEdge = 4;

const char* axis_title(PlotMetric metric) {
  return metric == PlotMetric::kMilliseconds ? "GPU time (ms)" : "share of GPU time (%)";
}

// White on dark colours, as WCAG computes luminance and contrast.
Colour text_colour(Colour background) {
  auto linear = [](uint8_t channel) {
    double c = channel / 255.0;
    return c <= 0.04045 ? c / 12.92 : std::pow((c + 0.055) / 1.055, 2.4);
  };
  double luminance = 0.2126 * linear(background.red) + 0.7152 * linear(background.green) + 0.0722 * linear(background.blue);
  return 1.05 / (luminance + 0.05) > (luminance + 0.05) / 0.066 ? kWhite : kInk;
}

std::vector<std::string> label_texts(const BarChart& chart) {
  std::vector<std::string> texts;
  for (const Bar& bar : chart.bars) texts.push_back(bar.label);
  return texts;
}

// The bars that have a text where only one in `stride` has room for it: the last, the first, and between them.
std::vector<bool> thinned(size_t count, size_t stride) {
  std::vector<bool> shown(count);
  for (size_t i = 0; i < count; i += stride) shown[i] = i == 0 || i + stride < count || i + 1 == count;
  if (count > stride) shown[count - 1] = true;
  return shown;
}

// Of texts with lines this far apart, one in how many has room.
size_t stride_for(double size, double distance) { return static_cast<size_t>(std::max(1.0, std::ceil(size * kLineHeight / distance))); }

}  // namespace

double axis_width(const BarChart& chart, const TextWidth& text_width) {
  double most_us = 0;
  for (const Bar& bar : chart.bars) most_us = std::max(most_us, std::accumulate(bar.us.begin(), bar.us.end(), 0.0));
  int decimals = most_us > 0 ? decimals_of(round_up(most_us / 1000 / kMostTicks)) : 0;
  double widest = text_width(fmt::format("{:.{}f}", most_us / 1000, decimals), kTickSize, false);
  return std::max(kMinAxisWidth, widest + kTickGap + kAxisTitleSize * 2);
}

// ---- labels

bool labels_fit(const BarChart& chart, double width, const TextWidth& text_width) {
  double pitch = width / static_cast<double>(chart.bars.size());
  return std::ranges::all_of(chart.bars, [&](const Bar& bar) { return text_width(bar.label, BarLabels().size, false) + 8 <= pitch; });
}

BarLabels plan_labels(const BarChart& chart, double width, double left, const TextWidth& text_width) {
  BarLabels labels;
  if (labels_fit(chart, width, text_width)) {
    labels.texts = label_texts(chart);
    labels.height = labels.size * 1.9;
    return labels;
  }
  labels.slanted = true;
  labels.size = 10;
  double pitch = width / static_cast<double>(chart.bars.size());
  auto widths_fit = [&] {
    for (size_t i = 0; i < labels.texts.size(); ++i) {
      double room = (left + pitch * (static_cast<double>(i) + 0.5) - kFigureEdge) / kSlope - labels.size;
      if (text_width(labels.texts[i], labels.size, false) > std::min(room, kMaxLabelWidth)) return false;
    }
    return true;
  };
  size_t most = 40;
  do {
    labels.texts = shorten_names(label_texts(chart), most);
  } while (!widths_fit() && --most >= 8);
  double widest = 0;
  for (const std::string& text : labels.texts) widest = std::max(widest, text_width(text, labels.size, false));
  labels.height = widest * kSlope + labels.size * 1.8;
  auto shown = thinned(labels.texts.size(), stride_for(labels.size, pitch * kSlope));
  for (size_t i = 0; i < shown.size(); ++i) {
    if (!shown[i]) labels.texts[i].clear();
  }
  return labels;
}

void Panel::add_labels(const BarLabels& labels) {
  for (size_t i = 0; i < labels.texts.size(); ++i) {
    if (labels.texts[i].empty()) continue;
    FigureText text{.text = labels.texts[i], .x = middle(i), .y = bottom() + labels.size * 1.5, .size = labels.size, .anchor = Anchor::kMiddle};
    if (labels.slanted) {
      text.x += labels.size * 0.3;
      text.y = bottom() + labels.size * 1.1;
      text.anchor = Anchor::kEnd;
      text.angle = kSlant;
    }
    figure_.texts.push_back(std::move(text));
  }
}

// ---- numbers

double Panel::value(const Bar& bar, double us) const {
  if (metric_ == PlotMetric::kMilliseconds) return us / 1000;
  return bar.total_us > 0 ? us / bar.total_us * 100 : 0;
}

double Panel::total(const Bar& bar) const {
  return value(bar, std::accumulate(bar.us.begin(), bar.us.end(), 0.0));
}

// Then totals tell nothing: they are left out where bars are many.
bool Panel::all_whole() const {
  return metric_ == PlotMetric::kPercent && std::ranges::all_of(chart_.bars, [&](const Bar& bar) { return format_value(total(bar)) == "100"; });
}

Panel::Totals Panel::plan_totals() const {
  Totals totals;
  double widest = 0;
  for (const Bar& bar : chart_.bars) widest = std::max(widest, text_width_(format_value(total(bar)), totals.size, true));
  totals.height = totals.size * 1.5;
  if (widest + 4 <= pitch_) return totals;
  totals.upright = true;
  if (all_whole()) return totals;
  totals.height = widest * kUprightSize / totals.size + 8;
  totals.size = kUprightSize;
  totals.stride = stride_for(totals.size / kLineHeight * kDigitHeight, pitch_);
  return totals;
}

// Of the bars that a total stands over: where bars are thinner than a line of text these are several.
double Panel::highest_near(size_t index, const Totals& totals) const {
  auto reach = static_cast<size_t>(totals.upright ? totals.size / 2 / pitch_ + 0.5 : 0);
  double highest = 0;
  for (size_t i = index - std::min(index, reach); i <= index + reach && i < chart_.bars.size(); ++i) highest = std::max(highest, total(chart_.bars[i]));
  return highest;
}

void Panel::add_totals(const Totals& totals) {
  if (totals.upright && all_whole()) return;
  auto shown = thinned(chart_.bars.size(), totals.stride);
  for (size_t i = 0; i < chart_.bars.size(); ++i) {
    if (!shown[i]) continue;
    double top = bottom() - highest_near(i, totals) * scale_;
    FigureText text{.text = format_value(total(chart_.bars[i])), .x = middle(i), .y = top - totals.size * 0.45};
    text.size = totals.size;
    text.bold = true;
    text.anchor = totals.upright ? Anchor::kStart : Anchor::kMiddle;
    if (totals.upright) text.x += centred(totals.size);
    if (totals.upright) text.angle = 90;
    figure_.texts.push_back(std::move(text));
  }
}

// ---- axis and bars

void Panel::add_axis(Rect place) {
  double step = highest_ > 0 ? round_up(highest_ * kTickDistance / bars_.height) : 0;
  for (int i = 0; i == 0 || (step > 0 && i * step <= highest_ * (1 + 1e-9)); ++i) {
    double y = bottom() - i * step * scale_;
    if (i > 0) figure_.lines.push_back({bars_.x, y, bars_.x + bars_.width, y, 0.8, kGrid});
    figure_.texts.push_back({.text = fmt::format("{:.{}f}", i * step, decimals_of(step)),
                             .x = bars_.x - kTickGap,
                             .y = y + centred(kTickSize),
                             .size = kTickSize,
                             .anchor = Anchor::kEnd,
                             .colour = kSoft});
  }
  figure_.lines.push_back({bars_.x, bottom(), bars_.x + bars_.width, bottom(), 1, kInk});
  figure_.texts.push_back({.text = axis_title(metric_),
                           .x = place.x + kAxisTitleSize * 0.8,
                           .y = bars_.y + bars_.height / 2,
                           .size = kAxisTitleSize,
                           .anchor = Anchor::kMiddle,
                           .angle = 90});
}

void Panel::add_bar(size_t index) {
  const Bar& bar = chart_.bars[index];
  double y = bottom();
  for (size_t i = 0; i < bar.us.size(); ++i) {
    double height = value(bar, bar.us[i]) * scale_;
    if (!(height > 0)) continue;
    y -= height;
    double gap = std::min(0.8, height * 0.2);  // white, between segments
    FigureBox box{middle(index) - bar_width_ / 2, y + gap, bar_width_, height - gap, looks_[i]};
    figure_.boxes.push_back(box);
    add_value(box, value(bar, bar.us[i]));
  }
}

void Panel::add_value(const FigureBox& box, double value) {
  std::string text = format_value(value);
  for (double size : {11.0, 9.5, 8.5}) {
    double width = text_width_(text, size, false);
    if (width + 4 > box.width || size * kLineHeight > box.height) continue;
    double x = box.x + box.width / 2;
    double y = box.y + box.height / 2;
    if (box.look.texture != Texture::kPlain) {
      figure_.boxes.push_back({x - width / 2 - 2, y - size * 0.55, width + 4, size * 1.1, {box.look.colour}});
    }
    figure_.texts.push_back({.text = text,
                             .x = x,
                             .y = y + centred(size),
                             .size = size,
                             .anchor = Anchor::kMiddle,
                             .colour = text_colour(box.look.colour)});
    return;
  }
}

void Panel::add(Rect place, double axis_width, const BarLabels* labels) {
  bars_ = {place.x + axis_width, place.y, place.width - axis_width, place.height - (labels ? labels->height : 0)};
  pitch_ = bars_.width / static_cast<double>(chart_.bars.size());
  bar_width_ = std::min(pitch_ < kCrowdedPitch ? pitch_ : pitch_ * kBarShare, kMaxBarWidth);
  Totals totals = plan_totals();
  bars_.y += totals.height;
  bars_.height -= totals.height;
  for (const Bar& bar : chart_.bars) highest_ = std::max(highest_, total(bar));
  scale_ = highest_ > 0 ? bars_.height / highest_ : 0;
  add_axis(place);
  for (size_t i = 0; i < chart_.bars.size(); ++i) add_bar(i);
  add_totals(totals);
  if (labels) add_labels(*labels);
}

}  // namespace lamina
