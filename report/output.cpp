#include "report/output.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <stdexcept>

#include "report/errors.h"

namespace lamina {
namespace {

// Returns false, with errno, when not all could be written.
bool write_all(int file, std::string_view text) {
  while (!text.empty()) {
    ssize_t written = write(file, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return false;
    text.remove_prefix(static_cast<size_t>(written));
  }
  return true;
}

[[noreturn]] void refuse(const std::string& path) {
  throw UsageError(path + " exists: name another file, or overwrite it with --force");
}

[[noreturn]] void fail_to_write(const std::string& where) {
  throw std::runtime_error("cannot write " + where + ": " + strerror(errno));
}

bool exists(const std::string& path) {
  struct stat status;
  return lstat(path.c_str(), &status) == 0;
}

// Throws what write_file would, as far as it is known before.
void check_writable(const std::string& path, bool force) {
  if (exists(path)) {
    if (!force) refuse(path);
    if (access(path.c_str(), W_OK) != 0) fail_to_write(path);
  } else {
    std::string folder = std::filesystem::path(path).parent_path().string();
    if (access(folder.empty() ? "." : folder.c_str(), W_OK | X_OK) != 0) fail_to_write(path);
  }
}

}  // namespace

void write_stdout(std::string_view text) {
  // Only here, and not for the whole command: a program started by `lamina run` inherits what is ignored.
  signal(SIGPIPE, SIG_IGN);
  if (write_all(STDOUT_FILENO, text)) return;
  if (errno == EPIPE) throw ClosedOutput();
  fail_to_write("to standard output");
}

void write_file(const std::string& path, std::string_view text, bool force) {
  int file = open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | (force ? O_TRUNC : O_EXCL), 0666);
  if (file < 0 && errno == EEXIST) refuse(path);
  if (file < 0) fail_to_write(path);
  bool whole = write_all(file, text);
  int problem = errno;
  if (close(file) != 0 && whole) {
    whole = false;
    problem = errno;
  }
  if (whole) return;
  struct stat status;
  if (lstat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode)) unlink(path.c_str());  // never a device
  errno = problem;
  fail_to_write(path);
}

void write_files(const std::vector<OutputFile>& files, bool force) {
  for (const OutputFile& file : files) check_writable(file.path, force);
  std::vector<std::string> added;
  try {
    for (const OutputFile& file : files) {
      bool is_new = !exists(file.path);
      write_file(file.path, file.text, force);
      if (is_new) added.push_back(file.path);
    }
  } catch (...) {
    for (const std::string& path : added) unlink(path.c_str());
    throw;
  }
}

std::string one_line(std::string_view text) {
  std::string line(text);
  for (char& c : line) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = ' ';
  }
  return line;
}

void print_message(std::string_view message) {
  std::string line = "lamina: " + one_line(message) + "\n";
  write_all(STDERR_FILENO, line);
}

}  // namespace lamina
