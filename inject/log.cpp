#include "inject/log.h"

#include <unistd.h>

#include <atomic>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace lamina {
namespace {

constexpr int kMaxLines = 8;

// One write a line, so that lines of several processes do not mix.
void write_line(const char* format, va_list arguments) {
  char line[1024] = "lamina: ";
  constexpr size_t kPrefix = sizeof("lamina: ") - 1;
  int length = vsnprintf(line + kPrefix, sizeof(line) - kPrefix - 1, format, arguments);
  if (length < 0) return;
  size_t size = strnlen(line, sizeof(line) - 2);
  line[size++] = '\n';
  [[maybe_unused]] ssize_t written = write(STDERR_FILENO, line, size);
}

bool level_is(const char* level) {
  const char* value = getenv("LAMINA_LOG");
  return value && strcmp(value, level) == 0;
}

}  // namespace

void log_line(const char* format, ...) {
  static std::atomic<int> lines{0};
  static const bool off = level_is("off");
  if (off || lines.fetch_add(1) >= kMaxLines) return;
  va_list arguments;
  va_start(arguments, format);
  write_line(format, arguments);
  va_end(arguments);
}

void log_debug(const char* format, ...) {
  static const bool debug = level_is("debug");
  if (!debug) return;
  va_list arguments;
  va_start(arguments, format);
  write_line(format, arguments);
  va_end(arguments);
}

}  // namespace lamina
