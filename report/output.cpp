#include "report/output.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
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

[[noreturn]] void fail_to_write(const std::string& where) {
  throw std::runtime_error("cannot write " + where + ": " + strerror(errno));
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
  if (file < 0 && errno == EEXIST) throw UsageError(path + " exists: name another file, or overwrite it with --force");
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
