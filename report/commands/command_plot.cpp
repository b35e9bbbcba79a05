// `lamina plot`: a profile as stacked bars, in a file for a talk or a paper.
#include <map>
#include <memory>

#include "report/commands/choice.h"
#include "report/commands/commands.h"
#include "report/commands/figure_text.h"
#include "report/format.h"
#include "report/load/load_report.h"
#include "report/output.h"
#include "report/plot/canvas.h"
#include "report/plot/chart.h"
#include "report/plot/layout.h"

namespace lamina {
namespace {

struct PlotOptions {
  ChartOptions chart;
  std::vector<std::string> folds;
  std::string output;
  std::string level = "module";
  std::string metric;
  std::optional<uint32_t> rank;
  bool force = false;
};

const std::map<std::string, std::vector<PlotMetric>> kMetrics = {
    {"", {PlotMetric::kMilliseconds, PlotMetric::kPercent}},
    {"cuda_time_ms", {PlotMetric::kMilliseconds}},
    {"pct_cuda_time", {PlotMetric::kPercent}},
};

void run_plot(PlotOptions options) {
  std::string path = options.output.empty() ? beside_profile(options.chart.profile, ".pdf") : options.output;
  ImageFormat format = image_format(path);
  TextWidth text_width = figure_text_width();
  options.chart.level = options.level == "kernel" ? PlotLevel::kKernel : PlotLevel::kModule;
  options.chart.folds.insert(options.folds.begin(), options.folds.end());
  LoadOptions load;
  load.steps = StepDetail::kSummaries;
  load.rank = options.rank;
  std::vector<std::string> messages;
  BarChart chart = make_chart(load_report(options.chart.profile, load), options.chart, messages);
  for (const std::string& message : messages) print_message(message);
  write_file(path, draw(layout_chart(chart, kMetrics.at(options.metric), text_width), format), options.force);
  print_message("wrote " + path);
}

}  // namespace

void add_plot_command(CLI::App& command) {
  auto options = std::make_shared<PlotOptions>();
  command.add_option("PROFILE", options->chart.profile, "Profile folder, one file of it, or a layerwise JSON")->required();
  command.add_option("-o,--output", options->output, "File to write: .pdf, .svg, .png, .jpg or .jpeg (default: PROFILE.pdf)");
  command.add_option("--level", options->level, "What a bar stacks: module, the innermost ones (default), or kernel")->check(CLI::IsMember({"module", "kernel"}));
  command.add_option("--top-k", options->chart.top_k, "How many names are shown: the largest, and `others` (default: 9)")->check(CLI::Range(1u, 1000000u));
  command.add_option("--fold", options->folds, "Show this layer as one segment: its name or class; may be given again")->expected(1)->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  command.add_flag("--ignore-sampler", options->chart.ignore_sampler, "Leave out Sampler and LogitsProcessor");
  command.add_option("--plot-metric", options->metric, "One panel instead of two: cuda_time_ms or pct_cuda_time")
      ->check(CLI::IsMember({"cuda_time_ms", "pct_cuda_time"}));
  command.add_option("--step-interval", options->chart.step_interval, "Draw every N-th step of a phase, and its last")->check(CLI::Range(1u, 1000000u));
  command.add_option("--phase", options->chart.phase, "A phase such as decode, or one step of it such as decode_7; default: all");
  command.add_option("--rank", options->rank, "Only the process of this rank");
  command.add_flag("--force", options->force, "Replace the file if it is there");
  command.callback([options] { run_plot(*options); });
}

}  // namespace lamina
