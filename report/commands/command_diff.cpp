// `lamina diff`: two profiles, layer by layer.
#include <algorithm>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>
#include <vector>

#include "report/commands/choice.h"
#include "report/commands/commands.h"
#include "report/commands/figure_text.h"
#include "report/diff/changed_layers.h"
#include "report/errors.h"
#include "report/format.h"
#include "report/load/load_report.h"
#include "report/output.h"
#include "report/plot/canvas.h"
#include "report/plot/change_chart.h"
#include "report/render/diff.h"
#include "report/tree/step_name.h"

namespace lamina {
namespace {

constexpr int kSlower = 1;
constexpr size_t kSlowerTold = 10;

struct DiffOptions {
  std::string before, after;
  std::string phase;
  std::vector<uint32_t> ranks;
  std::string format = "text";
  std::string names = "short";
  std::string limit, layer_limit;
  std::string output, plot;
  bool all = false;
  bool force = false;
};

// Percent, with or without the sign; nothing for an empty text.
std::optional<double> percent_of(const std::string& text, std::string_view option) {
  if (text.empty()) return std::nullopt;
  char* end = nullptr;
  double percent = strtod(text.c_str(), &end);
  bool whole = *end == '\0' || (*end == '%' && end[1] == '\0');
  if (end == text.c_str() || !whole || !std::isfinite(percent) || percent < 0) {
    throw UsageError(fmt::format("{}: '{}' is no percentage such as 5%", option, text));
  }
  return percent;
}

// The chosen phases as a report of their own; a step becomes a phase of one step.
LayerReport load(const std::string& path, const DiffOptions& options, std::optional<uint32_t> rank) {
  LoadOptions load;
  load.steps = StepDetail::kSummaries;
  load.rank = rank;
  if (!options.phase.empty()) load.phase = options.phase;
  LayerReport report = load_report(path, load);
  std::vector<PhaseReport> phases;
  for (const Choice& choice : choose(report, options.phase, path)) {
    PhaseReport& phase =
        phases.emplace_back(choice.step ? PhaseReport{.name = choice.name(), .step_count = 1} : *choice.phase);
    if (!choice.step) continue;
    phase.summary = choice.summary();
    phase.steps = {*choice.step};
  }
  report.phases = std::move(phases);
  return report;
}

void check_comparable(const LayerReport& before, const LayerReport& after, const ReportChange& change,
                      const DiffOptions& options) {
  for (const PhaseChange& phase : change.phases) {
    if (phase.in_both()) return;
  }
  throw InputError(fmt::format("nothing to compare: {} has the phases {}; {} has {}", options.before,
                               phase_list(before), options.after, phase_list(after)));
}

// What a report is called: two ranks of one profile must not look the same.
std::string label(const std::string& path, const std::vector<uint32_t>& ranks, size_t side) {
  return ranks.empty() ? path : fmt::format("{}, rank {}", path, ranks[std::min(side, ranks.size() - 1)]);
}

std::string rendered(const ReportChange& change, const DiffOptions& options) {
  std::string before = label(options.before, options.ranks, 0);
  std::string after = label(options.after, options.ranks, 1);
  if (options.format == "text") return diff_text(change, {before, after, options.all, options.names == "full"});
  return diff_json(change, before, after).dump(1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

// How the figure is drawn, where there is one: what can't be drawn is told before anything is loaded.
struct Drawing {
  ImageFormat format;
  TextWidth text_width;
};

std::optional<Drawing> prepare_drawing(const DiffOptions& options) {
  if (options.plot.empty()) return std::nullopt;
  ImageFormat format = image_format(options.plot);
  return Drawing{format, figure_text_width()};
}

std::string drawn(const ReportChange& change, const DiffOptions& options, const Drawing& drawing) {
  std::vector<std::string> messages;
  ChangeChart chart = make_change_chart(change, label(options.before, options.ranks, 0), label(options.after, options.ranks, 1), messages);
  for (const std::string& message : messages) print_message(message);
  return draw(layout_changes(chart, drawing.text_width), drawing.format);
}

// Files first: where one can't be written nothing is printed.
void write(const ReportChange& change, const DiffOptions& options, const std::optional<Drawing>& drawing) {
  std::string text = rendered(change, options);
  bool to_stdout = options.output.empty() || options.output == "-";
  std::vector<OutputFile> files;
  if (!to_stdout) files.push_back({options.output, text});
  if (drawing) files.push_back({options.plot, drawn(change, options, *drawing)});
  write_files(files, options.force);
  for (const OutputFile& file : files) print_message("wrote " + file.path);
  if (to_stdout) write_stdout(text);
}

void tell(const std::vector<Slower>& list, const char* option, double limit) {
  for (size_t i = 0; i < list.size() && i < kSlowerTold; ++i) {
    std::string noise =
        list[i].noise_percent ? fmt::format("noise {:.2f}%", *list[i].noise_percent) : "noise not known: a single step";
    print_message(fmt::format("slower than {} {}% allows: {} by {:.2f}% ({})", option, limit, list[i].name,
                              list[i].percent, noise));
  }
  if (list.size() > kSlowerTold)
    print_message(fmt::format("slower than {} allows: {} more", option, list.size() - kSlowerTold));
}

// Whether what the limits are for stayed within them.
bool within_limits(const ReportChange& change, std::optional<double> limit, std::optional<double> layer_limit) {
  if (!limit && !layer_limit) return true;
  for (const PhaseChange& phase : change.phases) {
    if (phase.in_both() || is_unnamed_phase(phase.name)) continue;
    print_message(fmt::format("phase '{}' is in one of the two alone: not checked", phase.name));
  }
  bool any_time = std::ranges::any_of(checked_phases(change),
                                      [](const PhaseChange* phase) { return phase->time.before.mean_us > 0; });
  if (!any_time) throw InputError("no GPU time in the first profile to compare with: nothing was checked");
  std::vector<Slower> phases, layers;
  if (limit) phases = slower_phases(change, *limit);
  if (layer_limit) layers = slower_layers(change, *layer_limit);
  tell(phases, "--fail-over", limit.value_or(0));
  tell(layers, "--fail-over-layer", layer_limit.value_or(0));
  return phases.empty() && layers.empty();
}

void run_diff(const DiffOptions& options) {
  if (options.ranks.size() > 2)
    throw UsageError("--rank: give one for both, or two: of the first profile and of the second");
  auto limit = percent_of(options.limit, "--fail-over");
  auto layer_limit = percent_of(options.layer_limit, "--fail-over-layer");
  std::optional<uint32_t> rank_before, rank_after;
  if (!options.ranks.empty()) {
    rank_before = options.ranks.front();
    rank_after = options.ranks.back();
  }
  std::optional<Drawing> drawing = prepare_drawing(options);
  LayerReport before = load(options.before, options, rank_before);
  LayerReport after = load(options.after, options, rank_after);
  ReportChange change = compare_reports(before, after);
  check_comparable(before, after, change, options);
  write(change, options, drawing);
  if (!within_limits(change, limit, layer_limit)) throw ExitStatus{kSlower};
}

}  // namespace

void add_diff_command(CommandLine command) {
  auto options = std::make_shared<DiffOptions>();
  command.argument("BEFORE", options->before, "A profile folder, one file of it, or a layerwise JSON");
  command.argument("AFTER", options->after, "The same");
  command.phase(options->phase);
  command.text("--fail-over", options->limit,
               "Exit status 1 when the GPU time of a step of a phase grew by more than this, as in 5%, beyond the "
               "noise; what runs before and between phases counts only where there is no phase");
  command.text("--fail-over-layer", options->layer_limit, "The same for each layer");
  command.flag("--all", options->all,
               "Every layer and kernel, in the order of the tree; default: the layers that changed most");
  command.text("--format", options->format, "text (default) or json", {"text", "json"});
  command.text("--names", options->names, "short: cut to the column (default); full: as long as they are",
               {"short", "full"});
  command.numbers("--rank", options->ranks, "Only the process of this rank; given twice, one rank of each profile");
  command.text("-o,--output", options->output, "File to write (default: standard output)");
  command.text("--plot", options->plot, "Also draw the change into this file: .pdf, .svg, .png, .jpg or .jpeg");
  command.force(options->force);
  command.run([options] { run_diff(*options); });
}

}  // namespace lamina
