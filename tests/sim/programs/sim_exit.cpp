// Ways to end: sim_exit return|exit|_exit|_Exit|handler|quick|abort|kill|busy [STEPS [MILLISECONDS]]. STEPS steps are made, with a
// pause of MILLISECONDS behind each. `busy` returns while another thread goes on launching: its kernels are not
// counted. `handler` ends in a signal handler.
#include <signal.h>

#include <chrono>
#include <thread>

#include "sim_program.h"

namespace {

void step() {
  Phase phase("step");
  Range range("model");
  for (int i = 0; i < 10; ++i) launch("gemm");
}

void launch_forever() {
  start_cuda();
  CUstream stream = make_stream();
  for (;;) {
    nvtxRangePushA("busy");
    launch_only("busy", stream);
    nvtxRangePop();
  }
}

int end(std::string_view mode) {
  if (mode == "exit") exit(0);
  if (mode == "_exit") _exit(0);
  if (mode == "_Exit") _Exit(0);
  if (mode == "handler") {
    signal(SIGTERM, [](int) { _exit(0); });
    raise(SIGTERM);
  }
  if (mode == "quick") quick_exit(0);
  if (mode == "abort") abort();
  if (mode == "kill") kill(getpid(), SIGKILL);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  std::string_view mode = argc > 1 ? argv[1] : "return";
  int steps = argc > 2 ? atoi(argv[2]) : 10;
  int pause = argc > 3 ? atoi(argv[3]) : 0;
  start_cuda();
  nvtxMarkA("start");  // NVTX's first call is for one thread only
  if (mode == "busy") std::thread(launch_forever).detach();
  for (int i = 0; i < steps; ++i) {
    step();
    std::this_thread::sleep_for(std::chrono::milliseconds(pause));
  }
  expectations.print();
  return end(mode);
}
