// The `lamina` command: a table of commands, and the one place where errors become messages and exit statuses.
#include <CLI/CLI.hpp>
#include <sstream>

#include "report/commands/commands.h"
#include "report/errors.h"
#include "report/output.h"

namespace {

struct Command {
  const char* name;
  const char* description;
  void (*add)(lamina::CommandLine command);
};

constexpr Command kCommands[] = {
    {"run", "Run a program and record a profile of it", lamina::add_run_command},
    {"env", "Print the environment variables that `run` would set", lamina::add_env_command},
    {"table", "Print the layers of a profile with their GPU time", lamina::add_table_command},
    {"json", "Write a profile as layerwise JSON", lamina::add_json_command},
    {"plot", "Draw a profile as stacked bars, for a talk or a paper", lamina::add_plot_command},
    {"csv", "Write the tables of a profile as CSV", lamina::add_csv_command},
    {"trace", "Write a profile as a timeline for ui.perfetto.dev and chrome://tracing", lamina::add_trace_command},
    {"diff", "Compare two profiles: which layers got slower, and by which kernels", lamina::add_diff_command},
    {"html", "Write a profile as one HTML page to look around in", lamina::add_html_command},
    {"info", "Show processes, devices, phases and completeness of a profile", lamina::add_info_command},
    {"dump", "Print the raw records of a profile, one JSON object a line", lamina::add_dump_command},
};

constexpr int kBadInput = 1;
constexpr int kWrongUsage = 2;

// Help and version are asked for and go to stdout; everything else that ends the parsing is wrong usage.
int end_parsing(const CLI::App& app, const CLI::ParseError& error) {
  if (error.get_exit_code() == static_cast<int>(CLI::ExitCodes::Success)) {
    std::ostringstream text;
    app.exit(error, text, text);
    lamina::write_stdout(text.str());
    return 0;
  }
  auto used = app.get_subcommands();
  std::string help = used.empty() ? "lamina --help" : "lamina " + used.back()->get_name() + " --help";
  lamina::print_message(std::string(error.what()) + " (see " + help + ")");
  return kWrongUsage;
}

int run(int argc, char** argv) {
  CLI::App app("Lamina: a layerwise profiler for CUDA inference", "lamina");
  app.set_version_flag("--version", "lamina " LAMINA_VERSION);
  app.require_subcommand(0, 1);
  for (const Command& command : kCommands) {
    command.add(lamina::CommandLine(*app.add_subcommand(command.name, command.description)));
  }
  try {
    app.parse(argc, argv);
  } catch (const lamina::ExitStatus& end) {
    return end.status;
  } catch (const CLI::ParseError& error) {
    return end_parsing(app, error);
  }
  if (!app.get_subcommands().empty()) return 0;
  std::cerr << app.help();
  return kWrongUsage;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const lamina::ClosedOutput&) {
    return 0;
  } catch (const lamina::UsageError& error) {
    lamina::print_message(error.what());
    return kWrongUsage;
  } catch (const std::exception& error) {
    lamina::print_message(error.what());
    return kBadInput;
  }
}
