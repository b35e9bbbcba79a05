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

void add_plot_command(CommandLine command) {
  auto options = std::make_shared<PlotOptions>();
  command.report(options->chart.profile);
  command.text("-o,--output", options->output, "File to write: .pdf, .svg, .png, .jpg or .jpeg (default: PROFILE.pdf)");
  command.text("--level", options->level, "What a bar stacks: module, the innermost ones (default), or kernel",
               {"module", "kernel"});
  command.count("--top-k", options->chart.top_k, "How many names are shown: the largest, and `others` (default: 9)");
  command.texts("--fold", options->folds, "Show this layer as one segment: its name or class; may be given again");
  command.flag("--ignore-sampler", options->chart.ignore_sampler, "Leave out Sampler and LogitsProcessor");
  command.text("--plot-metric", options->metric, "One panel instead of two: cuda_time_ms or pct_cuda_time",
               {"cuda_time_ms", "pct_cuda_time"});
  command.count("--step-interval", options->chart.step_interval, "Draw every N-th step of a phase, and its last");
  command.phase(options->chart.phase);
  command.rank(options->rank);
  command.force(options->force);
  command.run([options] { run_plot(*options); });
}

}  // namespace lamina
