// Processes that make others. The rows name the process that they are of; a process without rows must have no profile
// of its own. Modes:
//   before   fork before CUDA: parent and child use CUDA, each for itself
//   after    fork after CUDA: the child's calls fail, it makes ranges and ends by exit()
//   exec     fork after CUDA and exec of this program: the child is a program of its own
//   vfork    vfork, then exec and, in a second one, _exit
//   threads  forks one after the other while threads launch, open ranges and phases, and make new names
#include <sys/wait.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "sim_program.h"

namespace {

int wait_for(pid_t child) {
  int status = 0;
  if (child < 0 || waitpid(child, &status, 0) != child) return 1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

void use_cuda(const char* process) {
  start_cuda();
  Range range(process);
  for (int i = 0; i < 10; ++i) launch(std::string("kernel_of_") + process);
  CHECK(cuCtxSynchronize());
  expectations.print(process);
}

int before() {
  nvtxRangePushA("before_fork");  // open in both
  open_path = {"before_fork"};
  pid_t child = fork();
  use_cuda(child == 0 ? "child" : "parent");
  return child == 0 ? 0 : wait_for(child);
}

int after() {
  use_cuda("parent");
  pid_t child = fork();
  if (child == 0) {
    Range range("in_child");
    bool failed = cuLaunchKernel(function("never"), 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr) != CUDA_SUCCESS;
    exit(failed ? 0 : 1);
  }
  int status = wait_for(child);
  use_cuda("parent");
  return status;
}

int exec(char** argv) {
  use_cuda("parent");
  char mode[] = "plain";
  char* arguments[] = {argv[0], mode, nullptr};
  pid_t child = fork();
  if (child == 0) {
    execv("/proc/self/exe", arguments);
    _exit(1);
  }
  int status = wait_for(child);
  use_cuda("parent");
  return status;
}

pid_t vfork_and_exec(char** arguments) {
  pid_t child = vfork();
  if (child != 0) return child;
  execv("/proc/self/exe", arguments);
  _exit(1);
}

pid_t vfork_and_exit() {
  pid_t child = vfork();
  if (child != 0) return child;
  _exit(0);
}

int with_vfork(char** argv) {
  use_cuda("parent");
  char mode[] = "plain";
  char* arguments[] = {argv[0], mode, nullptr};
  int failures = wait_for(vfork_and_exec(arguments)) + wait_for(vfork_and_exit());
  use_cuda("parent");
  return failures;
}

void busy_thread(std::atomic<bool>& stop, int number) {
  start_cuda();
  CUstream stream = make_stream();
  for (int i = 0; !stop; ++i) {
    std::string name = "new name " + std::to_string(number) + " " + std::to_string(i % 5000);
    nvtxRangePushA(number == 0 ? "phase:busy" : name.c_str());
    launch_only("busy", stream);
    nvtxRangePop();
    if (i % 32 == 0) std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
}

int with_threads() {
  start_cuda();
  nvtxMarkA("start");  // NVTX's first call is for one thread only
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) threads.emplace_back([&stop, i] { busy_thread(stop, i); });
  int status = 0;
  for (int i = 0; i < 50; ++i) {
    pid_t child = fork();
    if (child == 0) {
      nvtxRangePushA("phase:child");
      nvtxRangePushA("in_child");
      nvtxRangePop();
      _exit(0);
    }
    status |= wait_for(child);
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();
  return status;
}

}  // namespace

int main(int argc, char** argv) {
  std::string_view mode = argc > 1 ? argv[1] : "before";
  if (mode == "before") return before();
  if (mode == "after") return after();
  if (mode == "exec") return exec(argv);
  if (mode == "vfork") return with_vfork(argv);
  if (mode == "threads") return with_threads();
  if (mode == "plain") return use_cuda("child"), 0;
  fprintf(stderr, "sim_fork before|after|exec|vfork|threads\n");
  return 2;
}
