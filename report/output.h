// Where a command's result goes: standard output or a file. Messages about it go to stderr by way of errors.h.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace lamina {

// The reader of standard output went away, as in `lamina table X | head`: nothing is wrong, and nothing is left to do.
struct ClosedOutput {};

// Writes all of `text`, unbuffered: collect what belongs together. Throws ClosedOutput, or std::runtime_error.
void write_stdout(std::string_view text);

// Throws UsageError when the file exists and `force` is not given; a file that could not be written whole is removed.
void write_file(const std::string& path, std::string_view text, bool force);

struct OutputFile {
  std::string path;
  std::string text;
};

// All or nothing: what would fail is told before the first is written, and where one fails nevertheless those that were
// new are removed. Throws as write_file.
void write_files(const std::vector<OutputFile>& files, bool force);

// `text` on one line of a terminal: control characters, which a hostile input may hold, become spaces.
std::string one_line(std::string_view text);

// Prints `lamina: MESSAGE` to stderr in one write, so that lines of several processes do not mix.
void print_message(std::string_view message);

}  // namespace lamina
