#include "report/plot/layout.h"

#include <algorithm>

#include "report/plot/panel.h"

namespace lamina {
namespace {

// A slide of 16:9, in points.
constexpr double kWidth = 960;
constexpr double kHeight = 540;
constexpr double kMaxWidth = 2880;
constexpr double kMargin = 20;
constexpr double kPanelGap = 26;
constexpr double kMinPitch = 9;  // of bars, before the figure grows

struct Legend {
  std::vector<std::string> names;  // shortened, in the order of the segments
  double size = 12;
  double row = 20;
  double width = 0;
};

constexpr double kSwatch = 13;
constexpr double kSwatchGap = 8;
constexpr double kMaxLegendText = 290;
constexpr size_t kMaxLegendName = 72;  // characters
constexpr double kMinLegendRow = 11.5;

class Layout {
 public:
  Layout(const BarChart& chart, const std::vector<PlotMetric>& metrics, const TextWidth& text_width)
      : chart_(chart), metrics_(metrics), text_width_(text_width), looks_(looks_of(chart.names)), axis_(axis_width(chart, text_width)) {}

  Figure make() {
    figure_.width = kWidth;
    figure_.height = kHeight;
    figure_.title = chart_.title;
    top_ = kMargin + titles_height(chart_.subtitle);
    Legend legend = plan_legend();
    grow(legend);
    add_titles(figure_, chart_.title, chart_.subtitle, kMargin, text_width_);
    add_legend(legend);
    Rect area{kMargin, top_, figure_.width - 2 * kMargin - legend.width, figure_.height - top_ - kMargin};
    add_panels(area);
    return std::move(figure_);
  }

 private:
  // ---- legend

  Legend plan_legend() const {
    Legend legend;
    auto rows = static_cast<double>(std::max<size_t>(chart_.names.size(), 1));
    legend.row = std::clamp((kHeight - top_ - kMargin) / rows, kMinLegendRow, legend.row);
    legend.size = std::min(legend.size, legend.row * 0.72);
    legend.names = fit_names(chart_.names, kMaxLegendName, legend.size, kMaxLegendText, text_width_);
    double widest = 0;
    for (const std::string& name : legend.names) widest = std::max(widest, text_width_(name, legend.size, false));
    legend.width = chart_.names.empty() ? 0 : widest + kSwatch + kSwatchGap + kPanelGap;
    return legend;
  }

  // The highest segment stands first, as in the bars.
  void add_legend(const Legend& legend) {
    double x = figure_.width - kMargin - legend.width + kPanelGap;
    double y = top_ + legend.row / 2;
    for (size_t i = legend.names.size(); i-- > 0; y += legend.row) {
      double side = std::min(kSwatch, legend.row - 2);
      figure_.boxes.push_back({x, y - side / 2, kSwatch, side, looks_[i]});
      add_text({legend.names[i], x + kSwatch + kSwatchGap, y + centred(legend.size), legend.size});
    }
  }

  // ---- figure

  void grow(const Legend& legend) {
    double bars = static_cast<double>(chart_.bars.size()) * kMinPitch + axis_;
    figure_.width = std::clamp(bars + 2 * kMargin + legend.width, kWidth, kMaxWidth);
    figure_.height = std::max(kHeight, top_ + static_cast<double>(legend.names.size()) * legend.row + kMargin);
  }

  void add_text(FigureText text) { figure_.texts.push_back(std::move(text)); }

  // ---- panels

  void add_panels(Rect area) {
    auto count = static_cast<double>(metrics_.size());
    double wide = (area.width - kPanelGap * (count - 1)) / count;
    bool beside = metrics_.size() == 1 || labels_fit(chart_, wide - axis_, text_width_);
    BarLabels labels = plan_labels(chart_, (beside ? wide : area.width) - axis_, area.x + axis_, text_width_);
    double high = beside ? area.height : (area.height - kPanelGap * (count - 1) - labels.height) / count;
    Rect place{area.x, area.y, beside ? wide : area.width, high};
    for (size_t i = 0; i < metrics_.size(); ++i) {
      bool labelled = beside || i + 1 == metrics_.size();
      Rect panel = place;
      if (!beside && labelled) panel.height += labels.height;
      Panel(chart_, looks_, metrics_[i], text_width_, figure_).add(panel, axis_, labelled ? &labels : nullptr);
      (beside ? place.x : place.y) += (beside ? wide : high) + kPanelGap;
    }
  }

  const BarChart& chart_;
  const std::vector<PlotMetric>& metrics_;
  const TextWidth& text_width_;
  std::vector<Look> looks_;
  double axis_;  // its width
  Figure figure_;
  double top_ = 0;  // of panels and legend
};

}  // namespace

Figure layout_chart(const BarChart& chart, const std::vector<PlotMetric>& metrics, const TextWidth& text_width) {
  return Layout(chart, metrics, text_width).make();
}

}  // namespace lamina
