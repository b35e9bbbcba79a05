// `lamina html`: a profile as one HTML page.
#include <filesystem>
#include <memory>
#include <set>

#include "report/commands/choice.h"
#include "report/commands/commands.h"
#include "report/format.h"
#include "report/load/load_report.h"
#include "report/output.h"
#include "report/render/html_page.h"

namespace lamina {
namespace {

struct HtmlOptions {
  std::string profile;
  std::string output;
  std::string phase;
  std::optional<uint32_t> rank;
  std::string groups;
  bool force = false;
};

// What --phase chose, by name: reports of single ranks may lack it.
struct Chosen {
  std::string phase;
  std::optional<uint32_t> step;
};

std::vector<Chosen> chosen_phases(const LayerReport& report, const HtmlOptions& options) {
  std::vector<Chosen> chosen;
  for (const Choice& choice : choose(report, options.phase, options.profile)) {
    chosen.push_back({choice.phase->name, choice.step ? std::optional(choice.step->number) : std::nullopt});
  }
  return chosen;
}

// A phase that consists of this one step.
void keep_step(PhaseReport& phase, uint32_t number) {
  std::erase_if(phase.steps, [&](const StepReport& step) { return step.number != number; });
  phase.name += fmt::format("_{}", number);
  phase.step_count = phase.steps.size();
  phase.summary = phase.steps.empty() ? std::vector<SummaryNode>() : phase.steps[0].summary;
}

void keep_chosen(LayerReport& report, const std::vector<Chosen>& chosen) {
  std::erase_if(report.phases, [&](const PhaseReport& phase) {
    return std::ranges::none_of(chosen, [&](const Chosen& each) { return each.phase == phase.name; });
  });
  for (const Chosen& each : chosen) {
    for (PhaseReport& phase : report.phases) {
      if (each.step && phase.name == each.phase) keep_step(phase, *each.step);
    }
  }
}

LoadOptions load_options(const HtmlOptions& options) {
  LoadOptions load;
  load.steps = StepDetail::kSummaries;
  if (!options.phase.empty()) load.phase = options.phase;
  load.rank = options.rank;
  return load;
}

// Each rank by itself, where the profile has several.
void add_ranks(Page& page, const std::vector<Process>& processes, const std::vector<Chosen>& chosen,
               const HtmlOptions& options) {
  std::set<uint32_t> ranks;
  for (const Process& process : processes) {
    if (process.rank) ranks.insert(*process.rank);
  }
  if (ranks.size() < 2) return;
  for (uint32_t rank : ranks) {
    LoadOptions load = load_options(options);
    load.rank = rank;
    load.tell_problems = false;  // told once already
    LayerReport report = load_report(options.profile, load);
    keep_chosen(report, chosen);
    page.ranks.push_back({std::to_string(rank), std::move(report)});
  }
}

std::string title_of(const std::string& profile) {
  std::filesystem::path path = std::filesystem::path(beside_profile(profile, "")).lexically_normal();
  return path.filename().empty() || path.filename() == "." || path.filename() == ".." ? profile
                                                                                      : path.filename().string();
}

Page make_page(const HtmlOptions& options) {
  std::vector<Process> processes;
  LayerReport report = load_report(options.profile, load_options(options), &processes);
  std::vector<Chosen> chosen = chosen_phases(report, options);
  Page page{.title = title_of(options.profile), .ranks = {}, .account = {}, .groups = choose_groups(options.groups)};
  page.account = processes.empty() ? info_sections(report) : info_sections(processes, report);
  keep_chosen(report, chosen);
  page.ranks.push_back({options.rank ? std::to_string(*options.rank) : "all", std::move(report)});
  add_ranks(page, processes, chosen, options);
  return page;
}

void run_html(const HtmlOptions& options) {
  std::string html = html_page(make_page(options));
  if (options.output == "-") return write_stdout(html);
  std::string path = options.output.empty() ? beside_profile(options.profile, ".html") : options.output;
  write_file(path, html, options.force);
  print_message("wrote " + path);
}

}  // namespace

void add_html_command(CommandLine command) {
  auto options = std::make_shared<HtmlOptions>();
  command.report(options->profile);
  command.text("-o,--output", options->output, "File to write, - for standard output (default: PROFILE.html)");
  command.phase(options->phase);
  command.rank(options->rank);
  command.groups(options->groups);
  command.force(options->force);
  command.run([options] { run_html(*options); });
}

}  // namespace lamina
