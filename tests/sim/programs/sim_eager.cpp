// Eager launches: phases, layers, all ways to launch, copies, streams, devices, threads, failed launches, kernels of
// the driver's own, a module that is unloaded, and a part between cuProfilerStart and cuProfilerStop.
#include <thread>

#include "sim_program.h"

// Behind CUDA_API_PER_THREAD_DEFAULT_STREAM in cuda.h.
extern "C" CUresult CUDAAPI cuLaunchKernel_ptsz(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                                                unsigned, CUstream, void**, void**);

namespace {

constexpr size_t kBytes = 4096;

void forward(CUstream stream) {
  Range model("model");
  for (int layer = 0; layer < 2; ++layer) {
    Range block("layer" + std::to_string(layer));
    {
      Range attention("attention");
      launch("qkv", stream);
      launch("softmax", stream);
    }
    Range mlp("mlp");
    launch("gemm", stream);
    launch("gemm", stream);
  }
  launch("norm", stream);
}

void launch_variants(CUstream stream) {
  Range range("variants");
  CHECK(cuLaunchKernel_ptsz(function("ptsz"), 2, 3, 4, 32, 2, 1, 512, stream, nullptr, nullptr));
  expect_here("ptsz");
  CHECK(cuLaunchCooperativeKernel(function("cooperative"), 8, 1, 1, 64, 1, 1, 0, stream, nullptr));
  expect_here("cooperative");
  CUlaunchConfig config{};
  config.gridDimX = config.gridDimY = config.gridDimZ = config.blockDimX = config.blockDimY = config.blockDimZ = 1;
  config.hStream = stream;
  CHECK(cuLaunchKernelEx(&config, function("extended"), nullptr, nullptr));
  expect_here("extended");
}

// The calls return errors; no kernel runs.
void launch_badly() {
  Range range("failed");
  if (cuLaunchKernel(nullptr, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr) == CUDA_SUCCESS) _exit(1);
  if (cuLaunchKernel(function("empty"), 0, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr) == CUDA_SUCCESS) _exit(1);
}

void copies(CUstream stream) {
  Range range("copies");
  std::vector<char> host(kBytes);
  CUdeviceptr a, b;
  CUcontext contexts[2];
  for (int i = 0; i < 2; ++i) CHECK(cuDevicePrimaryCtxRetain(&contexts[i], i));
  CHECK(cuMemAlloc(&a, kBytes));
  CHECK(cuMemAlloc(&b, kBytes));
  CHECK(cuMemcpyHtoD(a, host.data(), kBytes));
  CHECK(cuMemcpyHtoDAsync(a, host.data(), kBytes, stream));
  CHECK(cuMemcpyDtoDAsync(b, a, kBytes, stream));
  CHECK(cuMemcpyPeerAsync(b, contexts[1], a, contexts[0], kBytes, stream));
  CHECK(cuMemsetD8Async(a, 1, kBytes, stream));
  CHECK(cuMemsetD32Async(b, 2, kBytes / 4, stream));
  CHECK(cuMemcpyDtoH(host.data(), b, kBytes));
  for (const char* name : {"Memcpy HtoD", "Memcpy HtoD", "Memcpy DtoD", "Memcpy PtoP", "Memcpy DtoH"}) {
    expect_here(name, "memcpy");
  }
  for (int i = 0; i < 2; ++i) expect_here("Memset", "memset");
  CHECK(cuMemFree(a));
  CHECK(cuMemFree(b));
}

// The kernels' names may lie at one address, one after the other.
void modules() {
  Range range("modules");
  for (const char* name : {"of_first_module", "of_second_module", "of_third_module"}) {
    CUmodule module;
    CHECK(cuModuleLoadData(&module, ""));
    CUfunction f = load_function(module, name);
    CHECK(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr));
    expect_here(name);
    CHECK(cuCtxSynchronize());
    CHECK(cuModuleUnload(module));
  }
}

void second_device() {
  CUcontext contexts[2];
  for (int i = 0; i < 2; ++i) CHECK(cuDevicePrimaryCtxRetain(&contexts[i], i));
  CHECK(cuCtxSetCurrent(contexts[1]));
  CUstream stream = make_stream();
  forward(stream);
  launch("on_second_device");
  CHECK(cuStreamSynchronize(stream));
  CHECK(cuCtxSetCurrent(contexts[0]));
}

// Threads without a phase are in the process's; the last has its own.
void threads() {
  Phase phase("threads");
  std::vector<std::thread> workers;
  for (int i = 0; i < 3; ++i) {
    workers.emplace_back([i] {
      start_cuda();
      Range range("worker" + std::to_string(i));
      CUstream stream = make_stream();
      for (int n = 0; n < 50; ++n) forward(stream);
    });
  }
  forward(nullptr);
  for (std::thread& worker : workers) worker.join();
  std::thread([] {
    Phase own("worker_phase", true);
    forward(make_stream());
  }).join();
  forward(nullptr);
}

}  // namespace

int main() {
  process_phase = "startup";
  start_cuda();
  launch("warm_up");
  CUstream stream = make_stream();
  {
    Phase phase("prefill");
    forward(stream);
    copies(stream);
  }
  launch("between");
  for (int step = 0; step < 3; ++step) {
    Phase phase("decode");
    forward(step == 1 ? nullptr : stream);
  }
  {
    Phase phase("odd");
    launch_variants(stream);
    launch_badly();
    modules();
    second_device();
    sim_launch_internal(stream, "sim_internal_kernel");
    expect("odd", {}, "sim_internal_kernel", 1, "internal");
  }
  threads();
  {
    Phase phase("profiled");
    CHECK(cuProfilerStart());
    forward(stream);
    CHECK(cuProfilerStop());
  }
  nvtxMarkA("phase:tail");  // until the end
  process_phase = "tail";
  forward(stream);
  CHECK(cuStreamSynchronize(stream));
  sim_set_duration(5'000'000'000);  // needs 64 bits
  launch("very_long", stream);
  expectations.print();
}
