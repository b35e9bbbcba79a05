#include "report/run/child_process.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <stdexcept>

namespace lamina {
namespace {

constexpr int kForwarded[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGCONT, SIGWINCH, SIGTSTP};

// While it lives, the forwarded signals and SIGCHLD are blocked, to be taken with sigwaitinfo. No handlers: what the
// program inherits stays as it was, and ignored signals (nohup) stay ignored.
class HeldSignals {
 public:
  HeldSignals() {
    sigemptyset(&held_);
    sigaddset(&held_, SIGCHLD);
    for (int signal : kForwarded) {
      struct sigaction action;
      if (sigaction(signal, nullptr, &action) == 0 && action.sa_handler != SIG_IGN) sigaddset(&held_, signal);
    }
    struct sigaction by_default = {};
    by_default.sa_handler = SIG_DFL;
    sigaction(SIGCHLD, &by_default, &child_action_);  // were it ignored, there would be no status to wait for
    sigprocmask(SIG_BLOCK, &held_, &mask_);
  }

  ~HeldSignals() {
    timespec now = {};
    while (sigtimedwait(&held_, nullptr, &now) > 0) {
    }  // what came too late for the program is not meant for this process
    restore();
  }

  HeldSignals(const HeldSignals&) = delete;
  HeldSignals& operator=(const HeldSignals&) = delete;

  void restore() const {
    sigaction(SIGCHLD, &child_action_, nullptr);
    sigprocmask(SIG_SETMASK, &mask_, nullptr);
  }

  siginfo_t next() const {
    siginfo_t info;
    while (sigwaitinfo(&held_, &info) < 0) {
    }
    return info;
  }

 private:
  sigset_t held_;
  sigset_t mask_;
  struct sigaction child_action_;
};

// In the child. Tells `errors` why the program could not be started.
[[noreturn]] void become(const std::vector<std::string>& arguments, const Variables& variables, int errors) {
  std::vector<char*> argv;
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  for (const auto& [name, value] : variables) setenv(name.c_str(), value.c_str(), 1);
  execvp(argv[0], argv.data());
  int problem = errno;
  [[maybe_unused]] ssize_t written = write(errors, &problem, sizeof(problem));
  _exit(127);
}

// Waits until the program runs; returns errno when it could not be started.
int exec_error(int errors) {
  int problem = 0;
  ssize_t size;
  do {
    size = read(errors, &problem, sizeof(problem));
  } while (size < 0 && errno == EINTR);
  return size == sizeof(problem) ? problem : 0;
}

// The terminal sends its signals to the whole foreground group: there the program has this one already.
bool has_it_already(const siginfo_t& info, pid_t child) {
  return info.si_code == SI_KERNEL && getpgid(child) == getpgrp();
}

// A job-control stop of the program is one of ours, so that the shell gets its terminal back. Not SIGSTOP: who sends
// that to the program alone will wake the program alone.
bool is_job_stop(int status) {
  return WIFSTOPPED(status) &&
         (WSTOPSIG(status) == SIGTSTP || WSTOPSIG(status) == SIGTTIN || WSTOPSIG(status) == SIGTTOU);
}

int wait_for_end(pid_t child, const HeldSignals& signals) {
  while (true) {
    siginfo_t info = signals.next();
    if (info.si_signo != SIGCHLD) {
      if (!has_it_already(info, child)) kill(child, info.si_signo);
      continue;
    }
    int status = 0;
    while (waitpid(child, &status, WNOHANG | WUNTRACED) == child) {
      if (WIFEXITED(status)) return WEXITSTATUS(status);
      if (WIFSIGNALED(status)) return 128 + WTERMSIG(status);
      if (is_job_stop(status)) kill(getpid(), SIGSTOP);
    }
  }
}

}  // namespace

ProgramEnd run_program(const std::vector<std::string>& arguments, const Variables& variables) {
  int errors[2];
  if (pipe2(errors, O_CLOEXEC) != 0) throw std::runtime_error(std::string("cannot make a pipe: ") + strerror(errno));
  HeldSignals signals;
  pid_t child = fork();
  if (child == 0) {
    signals.restore();
    become(arguments, variables, errors[1]);
  }
  int problem = child < 0 ? errno : 0;
  close(errors[1]);
  if (child > 0) problem = exec_error(errors[0]);
  close(errors[0]);
  if (child < 0) throw std::runtime_error(std::string("cannot make a process: ") + strerror(problem));
  ProgramEnd end;
  end.status = wait_for_end(child, signals);
  end.exec_error = problem;
  if (problem) end.status = problem == ENOENT || problem == ENOTDIR ? 127 : 126;
  return end;
}

}  // namespace lamina
