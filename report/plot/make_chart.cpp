// From a report to the bars of a chart.
#include <algorithm>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>

#include "report/format.h"
#include "report/names/palette.h"
#include "report/plot/chart.h"
#include "report/plot/segments.h"
#include "report/plot/steps.h"
#include "report/render/text.h"

namespace lamina {
namespace {

using nlohmann::ordered_json;

// ---- the words

// `meta-llama/Llama-3-8B`; empty where it is not known.
std::string shown(const ordered_json& value) {
  if (value.is_string()) return printable(value.get<std::string>());
  return value.is_number() ? value.dump() : "";
}

std::string context_value(const ordered_json& context, const char* key) {
  auto found = context.find(key);
  return found == context.end() ? "" : shown(*found);
}

// Newer files have it in engine_args, older ones flat.
std::string engine_value(const ordered_json& context, const char* key) {
  auto engine = context.find("engine_args");
  std::string value = engine != context.end() && engine->is_object() ? context_value(*engine, key) : "";
  return value.empty() ? context_value(context, key) : value;
}

// Out of `[_CudaDeviceProperties(name='NVIDIA H200', major=9, …), …]`, each kind once.
std::string gpu_names(const ordered_json& context) {
  std::string text = context_value(context, "cuda_devices");
  std::vector<std::string> names;
  constexpr std::string_view kBefore = "name='";
  for (size_t at = text.find(kBefore); at != text.npos; at = text.find(kBefore, at)) {
    at += kBefore.size();
    std::string name = text.substr(at, text.find('\'', at) - at);
    if (std::ranges::find(names, name) == names.end()) names.push_back(name);
  }
  return fmt::join(names, ", ");
}

std::string profile_name(std::string profile) {
  while (profile.size() > 1 && profile.back() == '/') profile.pop_back();
  return printable(std::filesystem::path(profile).filename().string());
}

std::string title_of(const ordered_json& context, const ChartOptions& options) {
  std::string model = engine_value(context, "model");
  const char* what = options.level == PlotLevel::kModule ? "module" : "kernel";
  return fmt::format("{}: GPU time by {}", model.empty() ? profile_name(options.profile) : model, what);
}

std::string subtitle_of(const ordered_json& context, const ChartOptions& options) {
  std::vector<std::string> parts;
  auto add = [&](std::string_view what, const std::string& value) {
    if (!value.empty()) parts.push_back(fmt::format("{}{}", what, value));
  };
  add("batch size ", context_value(context, "batch_size"));
  add("prompt length ", context_value(context, "prompt_len"));
  std::string parallel = engine_value(context, "tensor_parallel_size");
  if (parallel != "1") add("tensor parallel ", parallel);
  add("", gpu_names(context));
  if (options.ignore_sampler) parts.push_back("without sampler");
  return fmt::join(parts, ", ");
}

// ---- the bars

// The number of each path, in the order of first appearance: a path of several bars is one.
class Paths {
 public:
  size_t index(const std::vector<std::string>& path) {
    auto [found, added] = indices_.try_emplace(path, paths_.size());
    if (added) paths_.push_back(path);
    return found->second;
  }
  const std::vector<std::vector<std::string>>& all() const { return paths_; }

 private:
  std::map<std::vector<std::string>, size_t> indices_;
  std::vector<std::vector<std::string>> paths_;
};

double total_of(const std::vector<SummaryNode>& roots) {
  return std::accumulate(roots.begin(), roots.end(), 0.0, [](double sum, const SummaryNode& root) { return sum + root.cuda_time_us; });
}

void tell_unknown_folds(const ChartOptions& options, const std::set<std::string>& found, std::vector<std::string>& messages) {
  for (const std::string& fold : options.folds) {
    if (!found.contains(fold)) messages.push_back(fmt::format("--fold {}: there is no such layer (`lamina table` shows the names)", fold));
  }
}

// How much of its bars each name takes, with all groups weighing the same.
std::vector<double> weights(const BarChart& chart) {
  std::map<std::string_view, double> sizes;
  for (const Bar& bar : chart.bars) ++sizes[bar.group];
  std::vector<double> result(chart.names.size());
  for (const Bar& bar : chart.bars) {
    for (size_t i = 0; i < result.size(); ++i) result[i] += bar.total_us > 0 ? bar.us[i] / bar.total_us / sizes[bar.group] : 0;
  }
  return result;
}

}  // namespace

void keep_largest(BarChart& chart, size_t count) {
  std::vector<double> weight = weights(chart);
  std::vector<size_t> order(chart.names.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, std::greater(), [&](size_t i) { return weight[i]; });
  size_t kept = order.size() <= count ? order.size() : count - 1;
  std::vector<std::string> names;
  for (size_t i = 0; i < kept; ++i) names.push_back(chart.names[order[i]]);
  if (kept < order.size()) names.emplace_back(kOthers);
  for (Bar& bar : chart.bars) {
    std::vector<double> us(names.size());
    for (size_t i = 0; i < order.size(); ++i) us[std::min(i, kept)] += bar.us[order[i]];
    bar.us = std::move(us);
  }
  chart.names = std::move(names);
}

BarChart make_chart(const LayerReport& report, const ChartOptions& options, std::vector<std::string>& messages) {
  BarChart chart;
  chart.title = title_of(*report.context, options);
  chart.subtitle = subtitle_of(*report.context, options);
  std::set<std::string> found_folds;
  Paths paths;
  for (const StepBar& step : choose_steps(report, options, messages)) {
    Bar bar{step.label, step.phase, total_of(*step.roots), {}};
    for (const LayerSegment& segment : layer_segments(*step.roots, options, found_folds)) {
      size_t i = paths.index(segment.path);
      if (i >= bar.us.size()) bar.us.resize(i + 1);
      bar.us[i] += segment.us;
    }
    chart.bars.push_back(std::move(bar));
  }
  tell_unknown_folds(options, found_folds, messages);
  chart.names = unique_names(paths.all());
  for (Bar& bar : chart.bars) bar.us.resize(chart.names.size());
  size_t most = kMaxLooks + 1;  // with `others`
  if (options.top_k > most && chart.names.size() > most) {
    messages.push_back(fmt::format("--top-k {}: {} can be told apart; the rest are `others`", options.top_k, kMaxLooks));
  }
  keep_largest(chart, options.top_k == 0 ? most : std::min(options.top_k, most));
  return chart;
}

}  // namespace lamina
