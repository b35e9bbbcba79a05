// A program whose functions tell where its kernels come from: sim_stacks [MODE].
//   calls      layers by function calls alone (default); the launcher's two callers have equal frames
//   ranges     the same inside of NVTX ranges
//   graph      forward() captured once, replayed three times
//   recursion  a function that calls itself 2000 deep
//   small      on a thread with little stack
//   throw      exceptions through the frames of launching functions
//   jit        through code without unwind tables
//   plugins    two libraries, one after the other in the same place
//   loading    a library that waits for a launching thread while it is loaded; says what dlerror() says then
//   threads    eight threads at once
#include <dlfcn.h>
#include <pthread.h>
#include <sys/mman.h>

#include <limits>
#include <stdexcept>
#include <thread>

#include "sim_program.h"

// Calls stay calls: neither inlined nor jumped to.
#define FUNCTION [[gnu::noinline, gnu::noclone]]
#define STAYS asm volatile("" ::: "memory")

namespace program {

constexpr int kLayers = 4;

FUNCTION void launch_gemm(const char* kernel) {
  launch_only(kernel);
  STAYS;
}

FUNCTION void attention(int) {
  launch_gemm("gemm");
  STAYS;
}

FUNCTION void mlp(int) {
  launch_gemm("gemm");
  STAYS;
}

FUNCTION void forward(bool ranges) {
  for (int layer = 0; layer < kLayers; ++layer) {
    if (ranges) nvtxRangePushA("layer");
    attention(layer);
    mlp(layer);
    if (ranges) nvtxRangePop();
  }
  STAYS;
}

FUNCTION void run_step(bool ranges) {
  forward(ranges);
  STAYS;
}

FUNCTION void replay_graph() {
  CUstream stream = make_stream();
  CUgraph graph;
  CUgraphExec exec;
  CHECK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
  for (int i = 0; i < 2; ++i) launch_only("captured", stream);
  CHECK(cuStreamEndCapture(stream, &graph));
  CHECK(cuGraphInstantiate(&exec, graph, 0));
  for (int i = 0; i < 3; ++i) CHECK(cuGraphLaunch(exec, stream));
  STAYS;
}

FUNCTION void recurse(int depth) {
  if (depth == 0) return launch_gemm("deep");
  recurse(depth - 1);
  STAYS;
}

FUNCTION void throws(int i) {
  launch_gemm("before_throw");
  if (i % 2 == 0) throw std::runtime_error("thrown");
  STAYS;
}

FUNCTION int catches() {
  int caught = 0;
  for (int i = 0; i < 10; ++i) {
    try {
      throws(i);
    } catch (const std::runtime_error&) {
      ++caught;
    }
  }
  return caught;
}

void on_small_stack() {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, 32 << 10);
  pthread_t thread;
  auto run = [](void*) -> void* {
    start_cuda();
    launch_gemm("small");
    return nullptr;
  };
  if (pthread_create(&thread, &attributes, run, nullptr) != 0) abort();
  pthread_join(thread, nullptr);
}

FUNCTION void jitted() { launch_gemm("jitted"); STAYS; }

// sub rsp, 8; call rdi; add rsp, 8; ret
void through_jit() {
  const unsigned char code[] = {0x48, 0x83, 0xec, 0x08, 0xff, 0xd7, 0x48, 0x83, 0xc4, 0x08, 0xc3};
  void* page = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  memcpy(page, code, sizeof(code));
  mprotect(page, 4096, PROT_READ | PROT_EXEC);
  for (int i = 0; i < 3; ++i) reinterpret_cast<void (*)(void (*)())>(page)(jitted);
}

std::string in_own_folder(const char* name) {
  char path[4096];
  ssize_t size = readlink("/proc/self/exe", path, sizeof(path) - 1);
  std::string program(path, size > 0 ? static_cast<size_t>(size) : 0);
  return program.substr(0, program.rfind('/') + 1) + name;
}

void load_launching_library() {
  dlerror();
  if (!dlopen(in_own_folder("libsim_launching_constructor.so").c_str(), RTLD_NOW)) printf("not loaded\n");
  launch_only("loaded");
  const char* error = dlerror();
  printf("%s\n", error ? error : "no error");
}

void plugin(const char* name) {
  void* library = dlopen(in_own_folder(name).c_str(), RTLD_NOW | RTLD_LOCAL);
  auto run = library ? reinterpret_cast<void (*)(void (*)(const char*))>(dlsym(library, "plugin_run")) : nullptr;
  if (!run) {
    fprintf(stderr, "%s\n", dlerror());
    exit(1);
  }
  for (int i = 0; i < 3; ++i) run(launch_gemm);
  printf("%s at %p\n", name, reinterpret_cast<void*>(run));
  dlclose(library);
}

}  // namespace program

using namespace program;

int main(int argc, char** argv) {
  std::string_view mode = argc > 1 ? argv[1] : "calls";
  start_cuda();
  if (mode == "calls") for (int i = 0; i < 3; ++i) run_step(false);
  if (mode == "ranges") for (int i = 0; i < 3; ++i) run_step(true);
  if (mode == "graph") replay_graph();
  if (mode == "recursion") recurse(2000);
  if (mode == "small") on_small_stack();
  if (mode == "throw") printf("caught %d\n", catches());
  if (mode == "jit") through_jit();
  if (mode == "loading") load_launching_library();
  if (mode == "plugins") plugin("libsim_plugin_a.so"), plugin("libsim_plugin_b.so");
  if (mode == "threads") {
    std::vector<std::thread> threads;
    for (int i = 0; i < 8; ++i) {
      threads.emplace_back([] {
        start_cuda();
        for (int k = 0; k < 200; ++k) run_step(false);
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
  return 0;
}
