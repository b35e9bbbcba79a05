// From a comparison to the panels of a figure.
#include <algorithm>
#include <filesystem>
#include <span>

#include "report/diff/changed_layers.h"
#include "report/format.h"
#include "report/names/class_of.h"
#include "report/names/palette.h"
#include "report/plot/change_chart.h"
#include "report/plot/parts.h"
#include "report/plot/segments.h"
#include "report/render/text.h"

namespace lamina {
namespace {

constexpr size_t kMostPanels = 12;
constexpr size_t kMostLayers = 12;  // before `others`

// ---- bars

ChangeBar bar_of(const TimeChange& time, const std::string& label) {
  return {.label = label, .us = time.us(), .percent = time.percent(), .noise_us = time.noise(), .within_noise = time.within_noise()};
}

// Of the same class only the parameters are another: `was (weight=bfloat16[6144, 4096])`.
void add_old_name(ChangeBar& bar, const LayerChange& layer) {
  std::string_view old = layer.names_before.front();
  std::string_view layer_class = class_of(old);
  bool same_class = layer_class == class_of(layer.names_after.front()) && layer_class.size() < old.size();
  bar.note = same_class ? "was" : "renamed from";
  bar.old_name = shown_name(std::string(same_class ? old.substr(layer_class.size()) : old));
}

ChangeBar bar_of(const ChangedLayer& layer, const std::string& label) {
  ChangeBar bar = bar_of(layer.time, label);
  Fate fate = layer.layer().fate();
  if (fate == Fate::kRenamed) {
    add_old_name(bar, layer.layer());
  } else if (fate == Fate::kAdded || fate == Fate::kRemoved) {
    bar.note = name_of(fate);
  } else if (!layer.kernels.empty()) {
    bar.note = "other kernels";
  }
  return bar;
}

std::vector<std::string> labels_of(std::span<const ChangedLayer> layers) {
  std::vector<std::vector<std::string>> paths;
  for (const ChangedLayer& layer : layers) {
    std::vector<std::string>& path = paths.emplace_back();
    for (const LayerChange* row : layer.path) path.push_back(shown_name(row->names().front()));
  }
  return unique_names(paths);
}

std::vector<ChangeBar> bars_of(const PhaseChange& phase) {
  std::vector<ChangedLayer> layers = changed_layers(phase);
  std::vector<std::string> labels = labels_of(layers);
  // A single layer is shown rather than summed up.
  size_t shown = layers.size() <= kMostLayers + 1 ? layers.size() : kMostLayers;
  std::vector<ChangeBar> bars;
  for (size_t i = 0; i < shown; ++i) bars.push_back(bar_of(layers[i], labels[i]));
  std::span rest = std::span(layers).subspan(shown);
  if (!rest.empty()) bars.push_back(bar_of(sum_of(rest), fmt::format("{} ({} layers)", kOthers, rest.size())));
  return bars;
}

// ---- the words

std::string title_of(const PhaseChange& phase) {
  std::string name = shown_name(phase.name);
  if (phase.steps_before != phase.steps_after) return fmt::format("{}, {} → {} steps", name, phase.steps_before, phase.steps_after);
  return fmt::format("{}, {} step{}", name, phase.steps_after, phase.steps_after == 1 ? "" : "s");
}

std::string subtitle_of(const TimeChange& time) {
  std::string text = fmt::format("{} → {} µs per step: {} µs", format_value(time.before.mean_us), format_value(time.after.mean_us), signed_value(time.us()));
  if (auto percent = time.percent()) text += fmt::format(" ({}%)", signed_value(*percent));
  auto noise = time.noise();
  if (!noise) return text + ", noise not known";
  return text + fmt::format(", {} ±{} µs", time.within_noise() ? "within the noise of" : "noise", format_value(*noise));
}

// The last part of the path tells most, unless it is that of both.
std::string title_of(const std::string& before, const std::string& after) {
  auto last = [](std::string path) {
    while (path.size() > 1 && path.back() == '/') path.pop_back();
    return printable(std::filesystem::path(path).filename().string());
  };
  bool same = last(before) == last(after);
  return fmt::format("{} → {}: GPU time by layer", same ? printable(before) : last(before), same ? printable(after) : last(after));
}

std::string subtitle_of(const std::vector<ContextDifference>& context) {
  std::vector<std::string> facts;
  auto value = [](const std::optional<std::string>& fact) { return fact ? printable(*fact) : "unknown"; };
  for (const ContextDifference& fact : context) {
    facts.push_back(fmt::format("{} {} → {}", printable(fact.name), value(fact.before), value(fact.after)));
  }
  return facts.empty() ? "" : "not the same: " + fmt::join(facts, "; ");
}

}  // namespace

ChangeChart make_change_chart(const ReportChange& change, const std::string& before, const std::string& after, std::vector<std::string>& messages) {
  ChangeChart chart{title_of(before, after), subtitle_of(change.context), {}};
  std::vector<const PhaseChange*> phases = checked_phases(change);
  if (phases.size() > kMostPanels) {
    messages.push_back(fmt::format("the figure has the first {} of {} phases: choose one with --phase", kMostPanels, phases.size()));
    phases.resize(kMostPanels);
  }
  for (const PhaseChange* phase : phases) chart.panels.push_back({title_of(*phase), subtitle_of(phase->time), bars_of(*phase)});
  return chart;
}

}  // namespace lamina
