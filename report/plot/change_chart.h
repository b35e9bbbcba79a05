// A figure of what changed between two reports: a panel a phase, in it the layers that changed most as signed bars.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "report/diff/compare_reports.h"
#include "report/plot/figure.h"

namespace lamina {

struct ChangeBar {
  std::string label = {};
  std::string note = {};      // `added`, `renamed from`; empty: none
  std::string old_name = {};  // goes with the note; cut where it is too long
  double us = 0;              // after less before, a step
  std::optional<double> percent = {};   // of the time before; nothing where there was none
  std::optional<double> noise_us = {};  // nothing: not known
  bool within_noise = false;
};

struct ChangePanel {
  std::string title = {};     // the phase
  std::string subtitle = {};  // its own change
  std::vector<ChangeBar> bars = {};
};

struct ChangeChart {
  std::string title = {};
  std::string subtitle = {};  // empty: none
  std::vector<ChangePanel> panels = {};
};

// The phases that both reports have; those that the program did not name only when there are no others. Of each the layers
// of the text, in its order; where they are too many the last are one, `others`. `before`, `after`: what the reports are
// called. `messages`: what the user should know, a line each.
ChangeChart make_change_chart(const ReportChange& change, const std::string& before, const std::string& after, std::vector<std::string>& messages);

// Bars to the right are of what got slower, to the left of what got faster; each panel has its own scale. The width is that
// of a slide, the height what the bars need. No two texts overlap, and none leaves the figure.
Figure layout_changes(const ChangeChart& chart, const TextWidth& text_width);

// `+6.52`, `-89.7`, `+1234`; `0` where no digit would show.
std::string signed_value(double value);

}  // namespace lamina
