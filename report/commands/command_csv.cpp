// `lamina csv`: the tables of a profile as CSV, one to standard output or all to files.
#include <algorithm>
#include <filesystem>
#include <functional>
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

struct CsvOptions {
  std::string profile;
  std::string table;
  std::string phase;
  std::string output;
  std::string groups;
  std::optional<uint32_t> rank;
  bool force = false;

  bool to_stdout() const { return output == "-" || (output.empty() && !table.empty()); }
};

// One table of one phase.
std::string stdout_text(const LayerReport& report, const CsvOptions& options, const KernelGroups& groups) {
  std::vector<Choice> choices = choose(report, options.phase, options.profile);
  const TableKind& kind = table_kind(options.table.empty() ? "summary" : options.table);
  if (choices.size() > 1) {
    throw UsageError(
        fmt::format("one table goes to standard output: give one of {} to --phase, or -o BASE for files of all",
                    phase_list(report)));
  }
  check_choices(kind, choices);
  PhaseReport none;
  return kind.csv(choices.empty() ? Choice{&none} : choices[0], groups);
}

// Phases are named by the program.
std::string file_name_part(std::string_view phase) {
  constexpr size_t kMaxLength = 100;
  std::string part(phase.substr(0, kMaxLength));
  auto is_plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '.';
  };
  std::ranges::replace_if(part, std::not_fn(is_plain), '_');
  return part;
}

// What the names of the files begin with: -o BASE, in a folder -o FOLDER/, else beside the profile.
std::string base_name(const CsvOptions& options) {
  auto without = [](std::string name, std::string_view ending) {
    return name.ends_with(ending) ? name.substr(0, name.size() - ending.size()) : name;
  };
  std::string beside = without(beside_profile(options.profile, ""), ".json");
  if (options.output.empty()) return beside;
  if (options.output.ends_with('/')) return options.output + std::filesystem::path(beside).filename().string();
  return without(options.output, ".csv");
}

std::vector<OutputFile> files_of(const LayerReport& report, const CsvOptions& options, const KernelGroups& groups) {
  std::string base = base_name(options);
  std::vector<OutputFile> files;
  std::map<std::string, int> used;
  for (const Choice& choice : choose(report, options.phase, options.profile)) {
    std::string phase = file_name_part(choice.name());
    if (int others = used[phase]++; others > 0) phase += fmt::format("_{}", others + 1);
    for (const TableKind& kind : table_kinds()) {
      if ((!options.table.empty() && options.table != kind.name) || kind.is_empty(choice)) continue;
      files.push_back({fmt::format("{}_{}_{}_table.csv", base, phase, kind.name), kind.csv(choice, groups)});
    }
  }
  return files;
}

void run_csv(const CsvOptions& options) {
  KernelGroups groups = choose_groups(options.groups);
  LoadOptions load;
  if (!options.phase.empty()) load.phase = options.phase;
  load.rank = options.rank;
  LayerReport report = load_report(options.profile, load);
  if (options.to_stdout()) return write_stdout(stdout_text(report, options, groups));
  std::vector<OutputFile> files = files_of(report, options, groups);
  if (files.empty()) return print_message("no GPU work in " + options.profile);
  write_files(files, options.force);
  for (const OutputFile& file : files) print_message("wrote " + file.path);
}

}  // namespace

void add_csv_command(CommandLine command) {
  auto options = std::make_shared<CsvOptions>();
  command.report(options->profile);
  command.text("--table", options->table, table_meanings() + "; to standard output. Default: files of all",
               table_names());
  command.phase(options->phase);
  command.text("-o,--output", options->output,
               "Write BASE_PHASE_TABLE_table.csv; FOLDER/: into it; - for standard output (default: the profile's name "
               "is BASE)");
  command.rank(options->rank);
  command.groups(options->groups);
  command.force(options->force);
  command.run([options] { run_csv(*options); });
}

}  // namespace lamina
