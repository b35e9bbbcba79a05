// What `lamina run` and `lamina env` have in common: the variables that make a program record itself
// (inject/options.h).
#pragma once

#include <cstdint>
#include <ctime>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lamina {

struct RunOptions {
  std::string recorder;                     // path of liblamina_inject.so
  std::string out;                          // absolute profile folder; empty: the recorder names one
  std::vector<std::string> context;         // KEY=VALUE
  std::vector<std::string> phase_patterns;  // NAME=GLOB
  std::string collect;                      // phase names, or "profiler"; empty: everything
  uint64_t every = 1;
  std::string torch;        // off, modules or ops; empty: the default of the hook
  std::string stacks;       // on or off; empty: the default of the recorder
  std::string extensions;   // off, or globs over module.function; empty: the default of the hook
  std::string python_path;  // the program's PYTHONPATH without us
  bool preload = false;     // the recorder before libc, so that it sees a process end by _exit
  std::string preloaded;    // the program's LD_PRELOAD without us
};

using Variables = std::vector<std::pair<std::string, std::string>>;

// Throws UsageError for what the recorder would not understand.
Variables recorder_variables(const RunOptions& options);

// The path of liblamina_inject.so, searched from the folder of the command: there, in ../lib and in ../lib/lamina.
// Throws std::runtime_error.
std::string find_recorder(const std::string& command_folder);

// The name of a profile folder that is not there yet, as the recorder would choose it.
std::string new_folder_name(const std::string& program, time_t time, int pid);

// `text` as one word of a POSIX shell, quoted always or only where it must be.
std::string shell_quoted(std::string_view text);
std::string shell_word(std::string_view text);

// How `lamina env` can print the variables.
struct VariablesFormat {
  const char* name;
  std::string (*text)(const Variables&);
};
extern const std::vector<VariablesFormat> kVariablesFormats;

// What a profile folder holds.
struct FolderContents {
  size_t files = 0;  // one for each process
  uint64_t bytes = 0;
};
FolderContents profile_contents(const std::string& folder);

// As in "1.2 MB".
std::string size_text(uint64_t bytes);

}  // namespace lamina
