// `lamina table`: the layers and kernels of a profile as text.
#include <algorithm>
#include <map>
#include <memory>
#include <optional>

#include "report/commands/choice.h"
#include "report/commands/commands.h"
#include "report/commands/table_kinds.h"
#include "report/errors.h"
#include "report/format.h"
#include "report/load/load_report.h"
#include "report/output.h"

namespace lamina {
namespace {

struct TableOptions {
  std::string profile;
  std::string table = "summary";
  std::string phase;
  std::optional<uint32_t> rank;
  std::string names;
  bool paths = false;
  std::string stacks;
  std::string groups;
  bool idle = false;

  bool model() const { return table == "model"; }
  bool kernel() const { return table == "kernel"; }
};

const std::map<std::string, Names> kNames = {{"cut", Names::kCut}, {"short", Names::kShort}, {"full", Names::kFull}};

void check_options(const TableOptions& options) {
  if (options.paths && !options.model())
    throw UsageError("--paths: rows of the summary are many instances each; give --table model");
  if (!options.groups.empty() && !options.kernel()) throw UsageError("--groups: only --table kernel shows groups");
  if (options.idle && options.table != "summary") throw UsageError("--idle: only the summary table shows it");
}

LayerReport load(const TableOptions& options) {
  LoadOptions load;
  if (!options.phase.empty()) load.phase = options.phase;
  load.rank = options.rank;
  load.gpu_time = options.idle;
  if (!options.model()) load.steps = StepDetail::kNone;
  if (!options.stacks.empty()) load.stacks = options.stacks == "full" ? StackView::kFull : StackView::kLayers;
  LayerReport report = load_report(options.profile, load);
  bool timed = std::ranges::any_of(report.phases, [](const PhaseReport& phase) { return phase.gpu.has_value(); });
  if (!options.idle || timed || report.phases.empty()) return report;
  throw InputError(options.profile +
                   ": --idle: no time of a GPU is in it; a layerwise JSON has none, give the profile");
}

// Between phases no time is known: all is 0.
std::string text(const TableKind& kind, const Choice& choice, const TableOptions& options, const TableLook& look) {
  if (!options.idle) return kind.text(choice, look);
  const auto& time = choice.step ? choice.step->gpu : choice.phase->gpu;
  return idle_table(choice.summary(), time.value_or(GpuTime{}), look.names);
}

// As in `== decode: summary of 32 steps`.
std::string title(const Choice& choice, const TableOptions& options) {
  uint64_t steps = choice.phase->step_count;
  bool model = options.model();
  std::string what = options.table;
  const StepReport* step = choice.model_step();
  if (steps > 1 && model && step) what += fmt::format(" of step {} of {}", step->number, steps);
  if (steps > 1 && !model) what += fmt::format(" of {} steps", steps);
  return fmt::format("== {}: {}\n", one_line(choice.phase->name), what);
}

void print_tables(const TableOptions& options) {
  check_options(options);
  const TableKind& kind = table_kind(options.table);
  KernelGroups groups = choose_groups(options.groups);
  std::string names = !options.names.empty() ? options.names : options.kernel() ? "short" : "cut";
  TableLook look{kNames.at(names), options.paths ? Paths::kShown : Paths::kHidden, groups};
  LayerReport report = load(options);
  std::vector<Choice> choices = choose(report, options.phase, options.profile);
  check_choices(kind, choices);
  std::erase_if(choices, kind.is_empty);
  if (choices.empty()) {
    std::string where = options.phase.empty() ? "" : fmt::format("phase '{}' of ", options.phase);
    return print_message(fmt::format("no GPU work in {}{}", where, options.profile));
  }
  if (choices.size() == 1) return write_stdout(text(kind, choices[0], options, look));
  for (const Choice& choice : choices) {
    std::string space = &choice == choices.data() ? "" : "\n";
    write_stdout(space + title(choice, options) + text(kind, choice, options, look));
  }
}

}  // namespace

void add_table_command(CommandLine command) {
  auto options = std::make_shared<TableOptions>();
  command.report(options->profile);
  command.text("--table", options->table, table_meanings() + "; default: summary", table_names());
  command.phase(options->phase);
  command.rank(options->rank);
  command.text("--names", options->names,
               "cut: to the column (default); short: readable names of kernels (default of the kernel table); full: as "
               "long as they are",
               {"cut", "short", "full"});
  command.text_or("frames", "--stacks", options->stacks,
                  "The functions that launch a kernel as rows between layer and kernel; full: those of CUDA, bindings "
                  "and Python too",
                  {"frames", "full"});
  command.flag("--paths", options->paths, "With --table model: a column more, the instance path of each module");
  command.groups(options->groups);
  command.flag("--idle", options->idle,
               "With the summary: columns more, how long the GPU had nothing to do before each row");
  command.run([options] { print_tables(*options); });
}

}  // namespace lamina
