// Many threads that launch many kernels under ranges: sim_stress [THREADS [LAUNCHES [DEPTH [ROUNDS]]]].
// With ROUNDS as many threads again come, one round after the other.
#include <thread>

#include "sim_program.h"

namespace {

void work(int number, int launches, int depth) {
  start_cuda();
  sim_set_duration(100);
  CUstream stream = make_stream();
  CUfunction kernels[4];
  for (int i = 0; i < 4; ++i) kernels[i] = function("stress" + std::to_string(i));
  std::string name = "thread" + std::to_string(number);
  nvtxRangePushA(name.c_str());
  for (int i = 0; i < launches; ++i) {
    for (int level = 0; level < depth; ++level) nvtxRangePushA(level % 2 ? "odd" : "even");
    CHECK(cuLaunchKernel(kernels[i % 4], 1, 1, 1, 32, 1, 1, 0, stream, nullptr, nullptr));
    for (int level = 0; level < depth; ++level) nvtxRangePop();
  }
  nvtxRangePop();
  Path path{name};
  for (int level = 0; level < depth; ++level) path.push_back(level % 2 ? "odd" : "even");
  for (int i = 0; i < 4; ++i) expect("all", path, "stress" + std::to_string(i), (launches + 3 - i) / 4);
}

}  // namespace

int main(int argc, char** argv) {
  int threads = argc > 1 ? atoi(argv[1]) : 4;
  int launches = argc > 2 ? atoi(argv[2]) : 10'000;
  int depth = argc > 3 ? atoi(argv[3]) : 3;
  int rounds = argc > 4 ? atoi(argv[4]) : 1;
  start_cuda();
  for (int round = 0; round < rounds; ++round) {
    std::vector<std::thread> workers;
    for (int i = 0; i < threads; ++i) workers.emplace_back(work, i, launches, depth);
    for (std::thread& worker : workers) worker.join();
  }
  expectations.print();
}
