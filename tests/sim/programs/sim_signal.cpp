// NVTX calls in a signal handler, which comes at any time: inside of malloc, of the recorder, of the driver. Each has a
// text of its own. They are balanced and launch nothing, so every kernel is under the ranges of the program itself.
#include <csignal>
#include <sys/time.h>
#include <sys/wait.h>

#include <atomic>
#include <cerrno>
#include <thread>

#include "sim_program.h"

namespace {

constexpr int kSteps = 15'000;

std::atomic<unsigned> ticks{0};

// A text not used before, made without malloc.
struct TickText {
  TickText() {
    unsigned number = ticks.fetch_add(1, std::memory_order_relaxed);
    for (int digit = 7; digit >= 0; --digit, number /= 10) {
      text[5 + digit] = static_cast<char>('0' + number % 10);
      wide[digit] = static_cast<wchar_t>(text[5 + digit]);
    }
  }
  char text[14] = "tick 00000000";
  wchar_t wide[9] = L"00000000";
};

// Once: the handler sets the next one, so that a slow machine gets on between two.
void set_alarm() {
  itimerval once{{0, 0}, {0, 50}};
  setitimer(ITIMER_REAL, &once, nullptr);
}

std::atomic<bool> finished{false};

void on_alarm(int) {
  int error = errno;
  TickText tick;
  nvtxRangePushA(tick.text);
  nvtxMarkA(tick.text + 5);
  nvtxRangeId_t range = nvtxRangeStartW(tick.wide);
  nvtxRangePushA("in a handler");
  nvtxRangePop();
  nvtxRangeEnd(range);
  nvtxRangePop();
  if (!finished) set_alarm();
  errno = error;
}

void start_alarms() {
  struct sigaction action {};
  action.sa_handler = on_alarm;
  action.sa_flags = SA_RESTART;
  sigaction(SIGALRM, &action, nullptr);
  set_alarm();
}

void work(const std::string& name) {
  for (int step = 0; step < kSteps; ++step) {
    Range outer(name);
    std::string text = "layer " + std::to_string(step % 2000) + " of a name that takes memory of its own";
    Range inner(text);
    launch("kernel_" + name);
  }
}

// Between the handlers of a fork all locks are held.
void fork_often() {
  for (int i = 0; i < 50; ++i) {
    pid_t child = fork();
    if (child == 0) _exit(0);
    while (waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
    }
  }
}

}  // namespace

int main() {
  start_cuda();
  nvtxMarkA("NVTX is up");  // its own first call must not be interrupted by another
  start_alarms();
  std::thread other(work, "other");
  work("main");
  fork_often();
  other.join();
  finished = true;
  expectations.print();
}
