// How far a long read is, on a terminal.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace lamina {

// A line on stderr that is rewritten as the read goes on and is gone after it. Short reads, and those with stderr elsewhere
// than on a terminal, show none.
class Progress {
 public:
  explicit Progress(std::string what);
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  ~Progress();

  void at(uint64_t done, uint64_t all);

 private:
  using Clock = std::chrono::steady_clock;

  void show(const std::string& line);

  std::string what_;
  bool on_terminal_;
  bool shown_ = false;
  Clock::time_point next_;
};

}  // namespace lamina
