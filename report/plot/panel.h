// One panel of a chart: axis, bars, the values in and above them, and the labels below.
#pragma once

#include <string>
#include <vector>

#include "report/plot/chart.h"
#include "report/plot/figure.h"
#include "report/plot/layout.h"
#include "report/plot/parts.h"

namespace lamina {

// What stands below the bars.
struct BarLabels {
  std::vector<std::string> texts;  // of each bar; empty: none, for want of room
  double size = 11;
  bool slanted = false;
  double height = 0;
};

// Left of the bars of every panel: the name of the axis and its numbers.
double axis_width(const BarChart& chart, const TextWidth& text_width);

// Whether all labels have room side by side below bars over `width`.
bool labels_fit(const BarChart& chart, double width, const TextWidth& text_width);

// `left`: where the bars begin in the figure.
BarLabels plan_labels(const BarChart& chart, double width, double left, const TextWidth& text_width);

class Panel {
 public:
  Panel(const BarChart& chart, const std::vector<Look>& looks, PlotMetric metric, const TextWidth& text_width, Figure& figure)
      : chart_(chart), looks_(looks), metric_(metric), text_width_(text_width), figure_(figure) {}

  // `axis_width`: of `place`. `labels`: null where a panel below has them.
  void add(Rect place, double axis_width, const BarLabels* labels);

 private:
  // How the totals above the bars are written.
  struct Totals {
    double size = 11;
    bool upright = false;
    size_t stride = 1;
    double height = 0;
  };

  double value(const Bar& bar, double us) const;
  double total(const Bar& bar) const;
  bool all_whole() const;
  Totals plan_totals() const;
  double middle(size_t bar) const { return bars_.x + pitch_ * (static_cast<double>(bar) + 0.5); }
  double bottom() const { return bars_.y + bars_.height; }
  void add_axis(Rect place);
  void add_bar(size_t index);
  void add_value(const FigureBox& box, double value);
  double highest_near(size_t index, const Totals& totals) const;
  void add_totals(const Totals& totals);
  void add_labels(const BarLabels& labels);

  const BarChart& chart_;
  const std::vector<Look>& looks_;
  PlotMetric metric_;
  const TextWidth& text_width_;
  Figure& figure_;
  Rect bars_{};          // what the highest bar fills
  double pitch_ = 0;
  double bar_width_ = 0;
  double scale_ = 0;     // points a unit
  double highest_ = 0;   // total
};

}  // namespace lamina
