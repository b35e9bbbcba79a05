#include "report/load/progress.h"

#include <unistd.h>

#include <algorithm>

#include "report/format.h"
#include "report/output.h"

namespace lamina {
namespace {

constexpr auto kSilence = std::chrono::milliseconds(700);
constexpr auto kInterval = std::chrono::milliseconds(100);
constexpr size_t kMaxName = 50;
constexpr char kClearLine[] = "\r\x1b[K";

}  // namespace

Progress::Progress(std::string what)
    : what_(one_line(what.substr(what.size() - std::min(what.size(), kMaxName)))), on_terminal_(isatty(STDERR_FILENO)), next_(Clock::now() + kSilence) {}

Progress::~Progress() {
  if (shown_) show(kClearLine);
}

void Progress::at(uint64_t done, uint64_t all) {
  if (!on_terminal_ || Clock::now() < next_) return;
  next_ = Clock::now() + kInterval;
  shown_ = true;
  show(fmt::format("{}reading {} {}%", kClearLine, what_, all > 0 ? 100 * done / all : 0));
}

void Progress::show(const std::string& line) {
  // A terminal that is gone is no reason to end.
  [[maybe_unused]] ssize_t written = write(STDERR_FILENO, line.data(), line.size());
}

}  // namespace lamina
