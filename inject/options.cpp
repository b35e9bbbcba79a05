#include "inject/options.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>

#include "inject/log.h"

namespace lamina {
namespace {

std::string variable(const char* name) {
  const char* value = getenv(name);
  return value ? value : "";
}

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  for (size_t begin = 0; begin <= text.size();) {
    size_t end = text.find(separator, begin);
    if (end == std::string::npos) end = text.size();
    if (end > begin) parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

double positive_number(const char* name, double fallback) {
  std::string text = variable(name);
  if (text.empty()) return fallback;
  char* end = nullptr;
  errno = 0;
  double value = strtod(text.c_str(), &end);
  if (errno == 0 && *end == '\0' && value > 0 && value < 1e9) return value;
  log_line("%s=%s is not a positive number: using %g", name, text.c_str(), fallback);
  return fallback;
}

std::vector<PhasePattern> phase_patterns() {
  std::vector<PhasePattern> patterns;
  for (const std::string& entry : split(variable("LAMINA_PHASE_PATTERN"), ';')) {
    size_t equals = entry.find('=');
    if (equals == std::string::npos || equals == 0 || equals + 1 == entry.size()) {
      log_line("LAMINA_PHASE_PATTERN: '%s' is not NAME=GLOB: left out", entry.c_str());
      continue;
    }
    patterns.push_back({entry.substr(0, equals), entry.substr(equals + 1)});
  }
  return patterns;
}

}  // namespace

std::string absolute_path(const std::string& path) {
  if (path.starts_with('/')) return path;
  char* folder = getcwd(nullptr, 0);
  std::string result = folder ? std::string(folder) + "/" + path : path;
  free(folder);
  return result;
}

Options read_options() {
  Options options;
  // Absolute from the start: the program may change its folder.
  options.out = variable("LAMINA_OUT");
  if (!options.out.empty()) options.out = absolute_path(options.out);
  options.context = variable("LAMINA_CONTEXT");
  options.phase_patterns = phase_patterns();
  for (std::string& name : split(variable("LAMINA_COLLECT"), ',')) {
    if (name == "profiler") {
      options.collect_profiler = true;
    } else {
      options.collect_phases.push_back(std::move(name));
    }
  }
  options.every = static_cast<uint64_t>(positive_number("LAMINA_EVERY", 1));
  if (options.every == 0) options.every = 1;
  std::string stacks = variable("LAMINA_STACKS");
  if (!stacks.empty() && stacks != "on" && stacks != "off") log_line("LAMINA_STACKS=%s is neither on nor off: using on", stacks.c_str());
  // Who records modules alone wants it cheap: ops that no range tells would each have a stack.
  options.stacks = stacks.empty() ? variable("LAMINA_TORCH") != "modules" : stacks != "off";
  constexpr size_t kLeastBufferBytes = 128u << 10;  // below, a single thread could not record
  options.buffer_bytes = std::max(static_cast<size_t>(positive_number("LAMINA_BUFFER_MB", 64) * (1 << 20)), kLeastBufferBytes);
  options.exit_deadline_s = positive_number("LAMINA_EXIT_DEADLINE", options.exit_deadline_s);
  return options;
}

}  // namespace lamina
