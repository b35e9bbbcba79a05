// `lamina run` starts a program that records itself; `lamina env` prints the variables that make it do so.
#include <CLI/CLI.hpp>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <memory>
#include <set>

#include "report/commands/commands.h"
#include "report/errors.h"
#include "report/format.h"
#include "report/output.h"
#include "report/run/child_process.h"
#include "report/run/launch.h"

namespace lamina {

namespace fs = std::filesystem;

namespace {

struct CommandOptions {
  RunOptions run;
  std::string program;
  bool force = false;
  bool quiet = false;
  std::string format = "shell";
};

// The options that both commands have.
void add_recorder_options(CLI::App& command, RunOptions& options) {
  command.add_option("-o,--output", options.out, "Profile folder; default: lamina-PROGRAM-DATE-PID");
  command.add_option("--context", options.context, "A value for the report's context, such as model=NAME; repeatable")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
  command
      .add_option("--phase-pattern", options.phase_patterns, "NVTX ranges that match are steps of a phase; repeatable")
      ->type_name("NAME=GLOB")
      ->allow_extra_args(false);
  command
      .add_option("--collect", options.collect,
                  "Record only these phases (A,B), or `profiler`: between cudaProfilerStart and Stop")
      ->type_name("PHASES");
  command.add_option("--every", options.every, "Record every N-th step of a phase")
      ->type_name("N")
      ->check(CLI::Range(uint64_t{1}, uint64_t{100'000'000}));
  command.add_option("--torch", options.torch, "In PyTorch programs record modules and ops (default), modules, or nothing (off)")
      ->check(CLI::IsMember({"off", "modules", "ops"}));
  command.add_option("--stacks", options.stacks, "Call stacks of launches that no op explains: on (default, except with --torch modules) or off")
      ->check(CLI::IsMember({"on", "off"}));
  command
      .add_option("--extensions", options.extensions,
                  "Record no calls of extension modules (off), or which: GLOB,... over module.function; default: those that use CUDA")
      ->type_name("GLOBS");
  command.add_flag("--preload", options.preload,
                   "Load the recorder before libc too: the end of the profile is there when a process ends by _exit (os._exit)");
}

std::string recorder_path() { return find_recorder(fs::read_symlink("/proc/self/exe").parent_path().string()); }

std::string absolute(const std::string& path) { return fs::absolute(path).lexically_normal().string(); }

// ---- the profile folder

// The folder of one run. It is made before the program starts: better to fail now than after an hour.
class ProfileFolder {
 public:
  ProfileFolder(const std::string& path, bool force) : path_(path) {
    std::error_code error;
    created_ = make(path, error);
    if (error) throw UsageError(fmt::format("cannot make the folder {}: {}", path, error.message()));
    before_ = profile_contents(path);
    if (created_ || force || fs::is_empty(path, error)) return;
    throw UsageError(fmt::format("{} is not empty: name another folder, or add to it with --force", path));
  }

  const std::string& path() const { return path_; }

  // What this run has added.
  FolderContents contents() const {
    FolderContents now = profile_contents(path_);
    return {now.files - std::min(now.files, before_.files), now.bytes - std::min(now.bytes, before_.bytes)};
  }

  void remove_if_unused() const {
    if (created_) rmdir(path_.c_str());  // fails when something is inside
  }

 private:
  // As the recorder makes it: for its user alone. False if it is there.
  static bool make(fs::path path, std::error_code& error) {
    if (!path.has_filename() && path.has_relative_path()) path = path.parent_path();  // a slash at the end
    if (path.has_parent_path()) fs::create_directories(path.parent_path(), error);
    if (error || mkdir(path.c_str(), 0700) == 0) return !error;
    if (errno != EEXIST || !fs::is_directory(path)) error.assign(errno, std::generic_category());
    return false;
  }

  std::string path_;
  bool created_ = false;
  FolderContents before_;
};

std::string environment(const char* name) {
  const char* value = getenv(name);
  return value ? value : "";
}

// ---- run

std::vector<std::string> program_arguments(const CLI::App& command, const std::string& program) {
  std::vector<std::string> arguments = command.remaining();
  bool separated = !arguments.empty() && arguments.front() == "--";
  if (!separated && !arguments.empty() && (program.empty() || std::ranges::count(arguments, "--") > 0)) {
    throw UsageError(fmt::format("unknown option '{}' (see lamina run --help)", arguments.front()));
  }
  if (!separated && !program.empty()) {
    throw UsageError(fmt::format("put -- before the program: lamina run [options] -- {} ...", program));
  }
  if (program.empty()) throw UsageError("no program to run: lamina run [options] -- PROGRAM [ARG...]");
  arguments.front() = program;
  return arguments;
}

// Another profiler's injection would not be loaded.
void warn_of_replaced(const Variables& variables) {
  for (const auto& [name, value] : variables) {
    const char* before = getenv(name.c_str());
    if (!name.ends_with("_INJECTION64_PATH") || !before || !*before || value == before) continue;
    print_message(fmt::format("{}={} is replaced for this run", name, before));
  }
}

void report_profile(const ProfileFolder& folder, bool quiet) {
  FolderContents contents = folder.contents();
  if (contents.files == 0) {
    print_message(
        "nothing was recorded: the program did not use CUDA, or the processes that do did not get the variables of "
        "`lamina env` (containers, remote workers)");
  } else if (!quiet) {
    print_message(fmt::format("profile in {} ({} process{}, {})", folder.path(), contents.files,
                              contents.files == 1 ? "" : "es", size_text(contents.bytes)));
    print_message(fmt::format("next: lamina table {}", shell_word(folder.path())));
  }
}

void run(const CLI::App& command, const CommandOptions& options) {
  std::vector<std::string> arguments = program_arguments(command, options.program);
  RunOptions recorder = options.run;
  recorder.recorder = recorder_path();
  std::string out = recorder.out.empty() ? new_folder_name(options.program, time(nullptr), getpid()) : recorder.out;
  recorder.out = absolute(out);
  recorder.python_path = environment("PYTHONPATH");
  recorder.preloaded = environment("LD_PRELOAD");
  Variables variables = recorder_variables(recorder);
  ProfileFolder folder(out, options.force);
  warn_of_replaced(variables);
  ProgramEnd end = run_program(arguments, variables);
  if (end.exec_error) {
    print_message(fmt::format("cannot run {}: {}", options.program, strerror(end.exec_error)));
  } else {
    report_profile(folder, options.quiet);
  }
  folder.remove_if_unused();
  if (end.status != 0) throw ExitStatus{end.status};
}

// ---- env

void print_variables(const CommandOptions& options) {
  RunOptions recorder = options.run;
  recorder.recorder = recorder_path();
  if (!recorder.out.empty()) recorder.out = absolute(recorder.out);
  // The other formats are for places where the variable has another value than here.
  if (options.format == "shell") {
    recorder.python_path = environment("PYTHONPATH");
    recorder.preloaded = environment("LD_PRELOAD");
  }
  Variables variables = recorder_variables(recorder);
  for (const VariablesFormat& format : kVariablesFormats) {
    if (options.format == format.name) write_stdout(format.text(variables));
  }
}

}  // namespace

void add_run_command(CommandLine line) {
  CLI::App& command = line.app();
  auto options = std::make_shared<CommandOptions>();
  add_recorder_options(command, options->run);
  command.add_flag("--force", options->force, "Add to a profile folder that is not empty");
  command.add_flag("-q,--quiet", options->quiet, "Do not say where the profile is");
  // The program is an option for CLI11 so that it takes `--` as ours; what follows is not parsed.
  command.add_option("PROGRAM", options->program, "The program and its arguments, after --")->type_name("[ARG...]");
  command.prefix_command();
  command.callback([&command, options] { run(command, *options); });
}

void add_env_command(CommandLine line) {
  CLI::App& command = line.app();
  auto options = std::make_shared<CommandOptions>();
  add_recorder_options(command, options->run);
  std::set<std::string> formats;
  for (const VariablesFormat& format : kVariablesFormats) formats.insert(format.name);
  command.add_option("--format", options->format, "shell (default), docker (-e options), kubernetes, ray or json")
      ->check(CLI::IsMember(formats));
  command.callback([options] { print_variables(*options); });
}

}  // namespace lamina
