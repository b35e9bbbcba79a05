// What the user asked of the recorder, read once from the environment. `lamina run` and `lamina env` set the same
// variables, so this list is the recorder's whole interface.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace lamina {

struct PhasePattern {
  std::string name;
  std::string glob;  // fnmatch(3), over the whole NVTX message
};

struct Options {
  std::string out;                           // LAMINA_OUT, absolute: profile folder; empty: one is named after the program
  std::string context;                       // LAMINA_CONTEXT: a JSON object with values for the report's context
  std::vector<PhasePattern> phase_patterns;  // LAMINA_PHASE_PATTERN: NAME=GLOB, several separated by ';'
  std::vector<std::string> collect_phases;   // LAMINA_COLLECT: phase names separated by ','; or
  bool collect_profiler = false;             // LAMINA_COLLECT=profiler: between cudaProfilerStart and Stop
  uint64_t every = 1;                        // LAMINA_EVERY: of each phase, the steps 1, N+1, 2N+1, ...
  bool stacks = true;                        // LAMINA_STACKS=on|off: call stacks of launches; default: unless LAMINA_TORCH=modules
  size_t buffer_bytes = 64u << 20;           // LAMINA_BUFFER_MB: records that wait for the writer
  double exit_deadline_s = 10;               // LAMINA_EXIT_DEADLINE: the last flush may take this long

  bool records_always() const { return collect_phases.empty() && !collect_profiler && every == 1; }
};

// Reads the environment. A value that cannot be understood is named in one line on stderr and its default taken.
Options read_options();

// The path as it is from any folder.
std::string absolute_path(const std::string& path);

}  // namespace lamina
