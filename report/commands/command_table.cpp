// `lamina table`: the layers of a profile as text.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>

#include "report/commands/commands.h"
#include "report/errors.h"
#include "report/load/load_report.h"
#include "report/output.h"
#include "report/render/tables.h"
#include "report/tree/step_name.h"

namespace lamina {
namespace {

struct TableOptions {
  std::string profile;
  std::string table = "summary";
  std::string phase;
  std::optional<uint32_t> rank;
  std::string names = "short";
  bool paths = false;
  std::string stacks;
  bool idle = false;

  bool model() const { return table == "model"; }
  bool library() const { return table == "library"; }
};

// A table to print: a phase, or one step of it.
struct Choice {
  const PhaseReport* phase;
  const StepReport* step = nullptr;
};

std::string phase_list(const LayerReport& report) {
  std::string list;
  for (const PhaseReport& phase : report.phases) {
    list += (list.empty() ? "" : ", ") + phase.name;
    if (phase.step_count > 1) list += fmt::format(" ({} steps)", phase.step_count);
  }
  return list.empty() ? "none" : list;
}

const PhaseReport* find_phase(const LayerReport& report, std::string_view name) {
  for (const PhaseReport& phase : report.phases) {
    if (phase.name == name) return &phase;
  }
  return nullptr;
}

// The step that `decode_7` names.
std::optional<Choice> find_step(const LayerReport& report, std::string_view name) {
  auto split = split_step_name(name);
  const PhaseReport* phase = split ? find_phase(report, split->phase) : nullptr;
  if (!phase) return std::nullopt;
  for (const StepReport& step : phase->steps) {
    if (step.number == split->number) return Choice{phase, &step};
  }
  return std::nullopt;
}

std::vector<Choice> choose(const LayerReport& report, const TableOptions& options) {
  std::vector<Choice> choices;
  if (options.phase.empty()) {
    for (const PhaseReport& phase : report.phases) choices.push_back({&phase});
  } else if (const PhaseReport* phase = find_phase(report, options.phase)) {
    choices.push_back({phase});
  } else if (auto step = find_step(report, options.phase)) {
    choices.push_back(*step);
  } else {
    throw InputError(fmt::format("no phase '{}' in {}: it has {}", options.phase, options.profile, phase_list(report)));
  }
  return choices;
}

// The step whose model table stands for the choice: that of a phase is its first.
const StepReport* model_step(const Choice& choice) {
  if (choice.step) return choice.step;
  return choice.phase->steps.empty() ? nullptr : &choice.phase->steps.front();
}

bool is_empty(const Choice& choice, const TableOptions& options) {
  if (options.library()) return choice.phase->libraries.empty();
  if (!options.model()) return (choice.step ? choice.step->summary : choice.phase->summary).empty();
  const StepReport* step = model_step(choice);
  return !step || step->model.empty();
}

// Between phases no time is known: all is 0.
std::string idle_text(const Choice& choice, Names names) {
  const auto& time = choice.step ? choice.step->gpu : choice.phase->gpu;
  return idle_table(choice.step ? choice.step->summary : choice.phase->summary, time.value_or(GpuTime{}), names);
}

void check_idle(const LayerReport& report, const TableOptions& options) {
  if (std::ranges::any_of(report.phases, [](const PhaseReport& phase) { return phase.gpu.has_value(); })) return;
  if (!report.phases.empty()) throw InputError(options.profile + ": --idle: no time of a GPU is in it; a layerwise JSON has none, give the profile");
}

std::string table_text(const Choice& choice, const TableOptions& options) {
  Names names = options.names == "full" ? Names::kFull : Names::kShort;
  if (options.library()) return summary_table(choice.phase->libraries, names);
  if (options.idle) return idle_text(choice, names);
  if (!options.model()) return summary_table(choice.step ? choice.step->summary : choice.phase->summary, names);
  const StepReport* step = model_step(choice);
  return model_table(step ? step->model : std::vector<ModelNode>(), names, options.paths ? Paths::kShown : Paths::kHidden);
}

// As in `== decode: summary of 32 steps`.
std::string title(const Choice& choice, const TableOptions& options) {
  uint64_t steps = choice.phase->step_count;
  bool model = options.model();
  std::string what = options.table;
  const StepReport* step = model_step(choice);
  if (steps > 1 && model && step) what += fmt::format(" of step {} of {}", step->number, steps);
  if (steps > 1 && !model) what += fmt::format(" of {} steps", steps);
  return fmt::format("== {}: {}\n", one_line(choice.phase->name), what);
}

void print_tables(const TableOptions& options) {
  if (options.paths && !options.model()) throw UsageError("--paths: rows of the summary are many instances each; give --table model");
  if (options.idle && options.table != "summary") throw UsageError("--idle: only the summary table shows it");
  LoadOptions load;
  load.gpu_time = options.idle;
  if (!options.phase.empty()) load.phase = options.phase;
  load.rank = options.rank;
  if (!options.model()) load.steps = StepDetail::kNone;
  if (!options.stacks.empty()) load.stacks = options.stacks == "full" ? StackView::kFull : StackView::kLayers;
  LayerReport report = load_report(options.profile, load);
  if (options.idle) check_idle(report, options);
  std::vector<Choice> choices = choose(report, options);
  if (options.library() && !choices.empty() && choices[0].step) throw UsageError("--table library: is of whole phases; give one to --phase");
  std::erase_if(choices, [&](const Choice& choice) { return is_empty(choice, options); });
  if (choices.empty()) {
    std::string where = options.phase.empty() ? "" : fmt::format("phase '{}' of ", options.phase);
    return print_message(fmt::format("no GPU work in {}{}", where, options.profile));
  }
  if (choices.size() == 1) return write_stdout(table_text(choices[0], options));
  for (const Choice& choice : choices) {
    std::string space = &choice == choices.data() ? "" : "\n";
    write_stdout(space + title(choice, options) + table_text(choice, options));
  }
}

}  // namespace

void add_table_command(CLI::App& command) {
  auto options = std::make_shared<TableOptions>();
  command.add_option("PROFILE", options->profile, "A profile folder, one file of it, or a layerwise JSON")->required();
  command.add_option("--table", options->table, "summary: equal layers merged (default); model: call by call; library: which library launches what")
      ->check(CLI::IsMember({"summary", "model", "library"}));
  command.add_option("--phase", options->phase,
                     "A phase such as decode, or one step of it such as decode_7; default: all");
  command.add_option("--rank", options->rank, "Only the process of this rank");
  command.add_option("--names", options->names, "short: cut to the column (default); full: as long as they are")
      ->check(CLI::IsMember({"short", "full"}));
  command.add_option("--stacks", options->stacks,
                     "The functions that launch a kernel as rows between layer and kernel; full: those of CUDA, bindings and Python too")
      ->expected(0, 1)
      ->default_str("frames")
      ->check(CLI::IsMember({"frames", "full"}));
  command.add_flag("--paths", options->paths, "With --table model: a column more, the instance path of each module");
  command.add_flag("--idle", options->idle, "With the summary: columns more, how long the GPU had nothing to do before each row");
  command.callback([options] { print_tables(*options); });
}

}  // namespace lamina
