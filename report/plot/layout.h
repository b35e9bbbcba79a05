// Where everything of a chart stands: no two texts overlap, and none leaves the figure.
#pragma once

#include <vector>

#include "report/plot/chart.h"
#include "report/plot/figure.h"

namespace lamina {

enum class PlotMetric { kMilliseconds, kPercent };

// A panel a metric, side by side while the labels of the bars have room, else one above the other; the legend at the
// right, in the order of the segments. The figure has the shape of a slide, and grows for many bars or names.
Figure layout_chart(const BarChart& chart, const std::vector<PlotMetric>& metrics, const TextWidth& text_width);

}  // namespace lamina
