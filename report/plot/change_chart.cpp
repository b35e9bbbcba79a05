#include "report/plot/change_chart.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>

#include "report/format.h"
#include "report/plot/parts.h"

namespace lamina {
namespace {

constexpr double kWidth = 960;   // a slide of 16:9, in points
constexpr double kHeight = 540;
constexpr double kMargin = 20;
constexpr double kPanelGap = 30;

constexpr double kTitleSize = 14;     // of a panel
constexpr double kSubtitleSize = 11;
constexpr double kHeader = 46;        // both of them, and what is free below
constexpr double kAxisHeight = 40;    // numbers and title below the bars
constexpr double kAroundBars = kHeader + kAxisHeight + kPanelGap / 2;  // of a panel's height
constexpr double kMinRow = 26;        // has room for a label and its note
constexpr double kMaxRow = 40;

constexpr double kLabelSize = 11;
constexpr double kNoteSize = 9;
constexpr double kLabelShare = 0.42;  // of a panel's width at most
constexpr size_t kMaxLabel = 72;      // characters
constexpr double kLabelGap = 10;

constexpr double kBarShare = 0.62;    // of a row; the rest is white
constexpr double kMaxBar = 20;
constexpr double kValueSize = 10;
constexpr double kValueGap = 6;
constexpr double kValueShare = 0.6;   // of the bars' width at most
constexpr double kMostNoise = 1.5;    // of the largest change

constexpr double kTickSize = 10.5;
constexpr double kTickDistance = 50;  // at least
constexpr double kMostTicks = 10;
constexpr double kLegendSize = 11;
constexpr double kLegendHeight = 30;
constexpr double kSwatch = 13;

// Okabe and Ito's vermilion and blue: told apart with any colour vision, and in grey.
constexpr Colour kSlower = {0xd5, 0x5e, 0x00};
constexpr Colour kFaster = {0x00, 0x72, 0xb2};
// Both with white: what may be no change at all. Striped too.
constexpr Colour kPaleSlower = {0xec, 0xb8, 0x8c};
constexpr Colour kPaleFaster = {0x8c, 0xc1, 0xde};

Look look_of(const ChangeBar& bar) {
  if (bar.within_noise) return {bar.us < 0 ? kPaleFaster : kPaleSlower, Texture::kRising};
  return {bar.us < 0 ? kFaster : kSlower};
}

// Wider error bars are cut: beside them no change could be seen.
double most_noise(const ChangePanel& panel) {
  double largest = 0;
  for (const ChangeBar& bar : panel.bars) largest = std::max(largest, std::abs(bar.us));
  return largest > 0 ? largest * kMostNoise : std::numeric_limits<double>::infinity();
}

bool has_cut_noise(const ChangePanel& panel) {
  return std::ranges::any_of(panel.bars, [most = most_noise(panel)](const ChangeBar& bar) { return bar.noise_us.value_or(0) > most; });
}

// An error bar, of boxes: these are drawn over bars, lines under them. No cap where it is cut.
void add_error_bar(Figure& figure, double from, double to, double y, bool caps) {
  constexpr double kThick = 1.2;
  constexpr double kCap = 7;
  figure.boxes.push_back({from, y - kThick / 2, to - from, kThick, {kInk}});
  if (!caps) return;
  for (double x : {from, to}) figure.boxes.push_back({x - kThick / 2, y - kCap / 2, kThick, kCap, {kInk}});
}

// ---- one phase

class ChangePanelLayout {
 public:
  ChangePanelLayout(const ChangePanel& panel, double row, const TextWidth& text_width, Figure& figure)
      : panel_(panel), row_(row), text_width_(text_width), figure_(figure) {}

  void add(double x, double y, double width) {
    place_ = {x, y, width, kHeader + row_ * static_cast<double>(panel_.bars.size()) + kAxisHeight};
    add_header();
    if (panel_.bars.empty()) return;
    plan_labels();
    plan_values();
    plan_scale();
    add_axis();
    for (size_t i = 0; i < panel_.bars.size(); ++i) {
      add_label(i);
      add_bar(i);
    }
  }

 private:
  double middle(size_t bar) const { return bars_.y + row_ * (static_cast<double>(bar) + 0.5); }
  double width_of(const std::string& text, double size) const { return text_width_(text, size, false); }

  void add_header() {
    double y = place_.y + kTitleSize * 0.8;
    std::string title = fit_text(panel_.title, kTitleSize, true, place_.width, text_width_);
    figure_.texts.push_back({.text = std::move(title), .x = place_.x, .y = y, .size = kTitleSize, .bold = true});
    std::string subtitle = fit_text(panel_.subtitle, kSubtitleSize, false, place_.width, text_width_);
    figure_.texts.push_back({.text = std::move(subtitle), .x = place_.x, .y = y + kSubtitleSize * 1.6, .size = kSubtitleSize, .colour = kSoft});
  }

  // ---- labels, and where the bars begin

  void plan_labels() {
    double room = place_.width * kLabelShare;
    for (const ChangeBar& bar : panel_.bars) {
      labels_.push_back(bar.label);
      notes_.push_back(note_of(bar, room));
    }
    labels_ = fit_names(labels_, kMaxLabel, kLabelSize, room, text_width_);
    double widest = 0;
    for (const std::string& label : labels_) widest = std::max(widest, width_of(label, kLabelSize));
    for (const std::string& note : notes_) widest = std::max(widest, width_of(note, kNoteSize));
    double left = widest + kLabelGap;
    bars_ = {place_.x + left, place_.y + kHeader, place_.width - left, row_ * static_cast<double>(panel_.bars.size())};
  }

  std::string note_of(const ChangeBar& bar, double room) const {
    if (bar.old_name.empty()) return bar.note;
    double left = room - width_of(bar.note + " ", kNoteSize);
    return bar.note + " " + fit_names(std::span(&bar.old_name, 1), kMaxLabel, kNoteSize, left, text_width_)[0];
  }

  void add_label(size_t i) {
    double x = bars_.x - kLabelGap;
    bool noted = !notes_[i].empty();
    double y = middle(i) + (noted ? -1.5 : centred(kLabelSize));
    Colour colour = panel_.bars[i].within_noise ? kSoft : kInk;
    figure_.texts.push_back({.text = labels_[i], .x = x, .y = y, .size = kLabelSize, .anchor = Anchor::kEnd, .colour = colour});
    if (!noted) return;
    figure_.texts.push_back({.text = notes_[i], .x = x, .y = y + kNoteSize * 1.15, .size = kNoteSize, .anchor = Anchor::kEnd, .colour = kSoft});
  }

  // ---- the numbers at the ends of the bars

  void write_values(bool with_percent) {
    values_.clear();
    room_left_ = room_right_ = 0;
    for (const ChangeBar& bar : panel_.bars) {
      std::string& text = values_.emplace_back(signed_value(bar.us));
      std::string percent = with_percent ? signed_value(bar.percent.value_or(0)) : "0";
      if (percent != "0") text += fmt::format(" ({}%)", percent);
      double& room = bar.us < 0 ? room_left_ : room_right_;
      room = std::max(room, width_of(text, kValueSize) + kValueGap);
    }
  }

  void plan_values() {
    write_values(true);
    if (room_left_ + room_right_ > bars_.width * kValueShare) write_values(false);
  }

  // ---- scale and axis

  // From the zero line to the ends of the bar and of its noise.
  double lowest(const ChangeBar& bar) const { return std::min(0.0, bar.us - noise(bar)); }
  double highest(const ChangeBar& bar) const { return std::max(0.0, bar.us + noise(bar)); }
  double noise(const ChangeBar& bar) const { return std::min(bar.noise_us.value_or(0), most_noise_); }

  void plan_scale() {
    double low = 0, high = 0;
    most_noise_ = most_noise(panel_);
    for (const ChangeBar& bar : panel_.bars) {
      low = std::min(low, lowest(bar));
      high = std::max(high, highest(bar));
    }
    double room = bars_.width - room_left_ - room_right_;
    scale_ = high > low ? room / (high - low) : 0;
    zero_ = bars_.x + room_left_ - low * scale_;
  }

  // Between multiples of it the numbers have room.
  double tick_step() const {
    if (!(scale_ > 0)) return 0;
    double furthest = std::max(zero_ - bars_.x, bars_.x + bars_.width - zero_) / scale_;
    double step = round_up(std::max(kTickDistance, bars_.width / kMostTicks) / scale_);
    while (width_of(fmt::format("{:+.{}f}", furthest, decimals_of(step)), kTickSize) + kValueGap > step * scale_) step = round_up(step * 1.5);
    return step;
  }

  void add_axis() {
    double bottom = bars_.y + bars_.height;
    double step = tick_step();
    double right = bars_.x + bars_.width;
    int first = step > 0 ? static_cast<int>(std::ceil((bars_.x - zero_) / scale_ / step)) : 0;
    int last = step > 0 ? static_cast<int>(std::floor((right - zero_) / scale_ / step)) : 0;
    for (int i = first; i <= last; ++i) add_tick(zero_ + i * step * scale_, i == 0 ? "0" : fmt::format("{:+.{}f}", i * step, decimals_of(step)), i == 0);
    figure_.texts.push_back({.text = "change of GPU time per step (µs)",
                             .x = bars_.x + bars_.width / 2,
                             .y = bottom + kTickSize * 1.4 + kLabelSize * 1.4,
                             .size = kLabelSize,
                             .anchor = Anchor::kMiddle});
  }

  void add_tick(double x, const std::string& number, bool zero) {
    double bottom = bars_.y + bars_.height;
    figure_.lines.push_back({x, bars_.y, x, bottom, zero ? 1.0 : 0.8, zero ? kInk : kGrid});
    double half = width_of(number, kTickSize) / 2;
    if (x + half > bars_.x + bars_.width + kPanelGap / 3) return;
    figure_.texts.push_back({.text = number, .x = x, .y = bottom + kTickSize * 1.3, .size = kTickSize, .anchor = Anchor::kMiddle, .colour = kSoft});
  }

  // ---- bars

  void add_bar(size_t i) {
    const ChangeBar& bar = panel_.bars[i];
    double height = std::min(row_ * kBarShare, kMaxBar);
    double length = std::abs(bar.us) * scale_;
    if (length > 0) figure_.boxes.push_back({bar.us < 0 ? zero_ - length : zero_, middle(i) - height / 2, length, height, look_of(bar)});
    if (noise(bar) * scale_ > 0.5) {
      add_error_bar(figure_, zero_ + (bar.us - noise(bar)) * scale_, zero_ + (bar.us + noise(bar)) * scale_, middle(i), *bar.noise_us <= most_noise_);
    }
    add_value(i);
  }

  void add_value(size_t i) {
    const ChangeBar& bar = panel_.bars[i];
    bool left = bar.us < 0;
    double x = zero_ + (left ? lowest(bar) * scale_ - kValueGap : highest(bar) * scale_ + kValueGap);
    double width = width_of(values_[i], kValueSize);
    // No grid behind it.
    figure_.boxes.push_back({left ? x - width : x, middle(i) - kValueSize * 0.6, width, kValueSize * 1.2, {kWhite}});
    figure_.texts.push_back({.text = values_[i],
                             .x = x,
                             .y = middle(i) + centred(kValueSize),
                             .size = kValueSize,
                             .anchor = left ? Anchor::kEnd : Anchor::kStart,
                             .colour = bar.within_noise ? kSoft : kInk});
  }

  const ChangePanel& panel_;
  double row_;
  const TextWidth& text_width_;
  Figure& figure_;
  Rect place_{}, bars_{};
  std::vector<std::string> labels_, notes_, values_;
  double room_left_ = 0, room_right_ = 0;  // of values, beyond the bars
  double most_noise_ = 0;
  double scale_ = 0;  // points a microsecond
  double zero_ = 0;
};

// ---- the figure

class ChangeLayout {
 public:
  ChangeLayout(const ChangeChart& chart, const TextWidth& text_width) : chart_(chart), text_width_(text_width) {}

  Figure make() {
    figure_.width = kWidth;
    figure_.title = chart_.title;
    add_titles(figure_, chart_.title, chart_.subtitle, kMargin, text_width_);
    double y = kMargin + titles_height(chart_.subtitle);
    double row = row_height(y);
    double width = (kWidth - 2 * kMargin - kPanelGap * static_cast<double>(columns() - 1)) / static_cast<double>(columns());
    for (size_t first = 0; first < chart_.panels.size(); first += columns()) {
      double x = kMargin;
      for (const ChangePanel& panel : beside(first)) {
        ChangePanelLayout(panel, row, text_width_, figure_).add(x, y, width);
        x += width + kPanelGap;
      }
      y += kAroundBars + row * most_bars(first);
    }
    add_legend(y);
    figure_.height = y + kLegendHeight + kMargin / 2;
    return std::move(figure_);
  }

 private:
  size_t columns() const { return chart_.panels.size() > 1 ? 2 : 1; }

  // The panels that stand side by side.
  std::span<const ChangePanel> beside(size_t first) const {
    return std::span(chart_.panels).subspan(first, std::min(columns(), chart_.panels.size() - first));
  }

  double most_bars(size_t first) const {
    size_t most = 0;
    for (const ChangePanel& panel : beside(first)) most = std::max(most, panel.bars.size());
    return static_cast<double>(most);
  }

  // As high as a slide has room for.
  double row_height(double top) const {
    double fixed = top + kLegendHeight + kMargin / 2;
    double rows = 0;
    for (size_t i = 0; i < chart_.panels.size(); i += columns()) {
      fixed += kAroundBars;
      rows += most_bars(i);
    }
    return std::clamp((kHeight - fixed) / std::max(rows, 1.0), kMinRow, kMaxRow);
  }

  // ---- legend

  bool any(auto condition) const {
    return std::ranges::any_of(chart_.panels, [&](const ChangePanel& panel) { return std::ranges::any_of(panel.bars, condition); });
  }

  void add_legend(double y) {
    double x = kMargin;
    y += kLegendHeight / 2;
    add_entry(x, y, "slower", {{kSlower}});
    add_entry(x, y, "faster", {{kFaster}});
    if (any([](const ChangeBar& bar) { return bar.within_noise; })) {
      add_entry(x, y, "within the noise", {{kPaleSlower, Texture::kRising}, {kPaleFaster, Texture::kRising}});
    }
    if (any([](const ChangeBar& bar) { return bar.noise_us.has_value(); })) {
      add_error_bar(figure_, x, x + kSwatch * 1.5, y, true);
      x += kSwatch * 0.5;
      bool cut = std::ranges::any_of(chart_.panels, has_cut_noise);
      add_entry(x, y, cut ? "noise (95 % confidence interval; wider where the ends are open)" : "noise (95 % confidence interval)", {});
    }
  }

  void add_entry(double& x, double y, const std::string& text, const std::vector<Look>& looks) {
    for (const Look& look : looks) {
      figure_.boxes.push_back({x, y - kSwatch / 2, kSwatch, kSwatch, look});
      x += kSwatch;
    }
    if (looks.empty()) x += kSwatch;
    x += 6;
    figure_.texts.push_back({.text = text, .x = x, .y = y + centred(kLegendSize), .size = kLegendSize});
    x += text_width_(text, kLegendSize, false) + 22;
  }

  const ChangeChart& chart_;
  const TextWidth& text_width_;
  Figure figure_;
};

}  // namespace

std::string signed_value(double value) {
  double size = std::abs(value);
  if (!(size >= 0.005)) return "0";
  if (size < 1) return fmt::format("{:+.2f}", value);
  return (value < 0 ? "-" : "+") + format_value(size);
}

Figure layout_changes(const ChangeChart& chart, const TextWidth& text_width) { return ChangeLayout(chart, text_width).make(); }

}  // namespace lamina
