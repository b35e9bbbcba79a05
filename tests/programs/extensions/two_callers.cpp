// two_callers: a program without Python and without NVTX, where call stacks alone tell who launched what. Two
// functions, attention and mlp, call one launcher of one kernel, and have frames of equal size:
//   main -> run_step -> forward -> attention or mlp -> launch_gemm
// The options add launches from places where a walk up the stack is hard. Each adds lines to the output: a checksum of
// the numbers so far, and how many kernels ran from there.
//
//   two_callers [STEPS]   8 steps if not given, of 4 layers each
//     --graph             capture one step into a CUDA graph, and replay it for each step
//     --deep N            a launch below N frames of a recursion
//     --small-stack       from a thread with a stack of 64 KB
//     --throw             around exceptions: before a throw, while the stack unwinds, in the handler
//     --jit               below code made at run time, which has no unwind tables
//     --dlclose           from plugin_a.so, then from plugin_b.so, loaded once the other is unloaded; twice
//
// Exit status: 0, 1 after an error, 2 after a wrong option.
#include "two_callers.h"

#include <dlfcn.h>
#include <pthread.h>
#include <sys/mman.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

constexpr char kUsage[] =
    "usage: two_callers [STEPS] [--graph] [--deep N] [--small-stack] [--throw] [--jit] [--dlclose]\n";

[[noreturn]] void fail(const std::string& what) {
  std::fprintf(stderr, "two_callers: %s\n", what.c_str());
  std::exit(1);
}

}  // namespace

void check(cudaError_t error, const char* call) {
  if (error != cudaSuccess) fail(std::string(call) + ": " + cudaGetErrorString(error));
}

// ---- the model. Its functions have names that a profiler can find, so they are in no anonymous namespace.

KEPT void attention(const Model& model, int layer) {
  launch_gemm(model, model.attention_weights + layer * kMatrix, model.hidden, model.inner);
}

KEPT void mlp(const Model& model, int layer) {
  launch_gemm(model, model.mlp_weights + layer * kMatrix, model.inner, model.hidden);
}

KEPT void forward(const Model& model) {
  for (int layer = 0; layer < kLayers; ++layer) {
    attention(model, layer);
    mlp(model, layer);
  }
}

KEPT void run_step(const Model& model) { forward(model); }

// Outside of the layers: one more product with the first matrix of each kind.
KEPT void launch_alone(const Model& model) {
  launch_gemm(model, model.mlp_weights, model.hidden, model.inner);
  launch_gemm(model, model.attention_weights, model.inner, model.hidden);
}
constexpr int kAlone = 2;  // its launches

// ---- launches from odd places

KEPT int descend(const Model& model, int depth) {
  if (depth > 0) return descend(model, depth - 1) + 1;  // adds, so that the call is no jump
  launch_alone(model);
  return 0;
}

KEPT void* small_stack_thread(void* model) {
  launch_alone(*static_cast<const Model*>(model));
  return nullptr;
}

void run_on_small_stack(Model& model) {
  constexpr size_t kStack = 64 << 10;
  pthread_attr_t attributes;
  pthread_t thread;
  pthread_attr_init(&attributes);
  if (pthread_attr_setstacksize(&attributes, kStack) != 0) fail("no stack of 64 KB");
  if (pthread_create(&thread, &attributes, small_stack_thread, &model) != 0) fail("no thread with a stack of 64 KB");
  pthread_join(thread, nullptr);
  pthread_attr_destroy(&attributes);
}

struct LaunchWhileUnwinding {
  const Model& model;
  KEPT ~LaunchWhileUnwinding() { launch_alone(model); }
};

KEPT void launch_and_throw(const Model& model) {
  launch_alone(model);
  throw std::runtime_error("thrown on purpose");
}

KEPT void throw_through(const Model& model) {
  const LaunchWhileUnwinding at_exit{model};
  launch_and_throw(model);
}

KEPT void run_throw(const Model& model) {
  try {
    throw_through(model);
    fail("nothing was thrown");
  } catch (const std::runtime_error&) {
    launch_alone(model);
  }
}

// What the made code calls: it gets its own address first, as the made code leaves that in the register.
using Target = void (*)(void* target, const Model& model);

KEPT void launch_from_jit(void* /*target*/, const Model& model) { launch_alone(model); }

KEPT void run_jit(const Model& model) {
  constexpr size_t kPage = 4096;
  const unsigned char code[] = {0x48, 0x83, 0xec, 0x08,  // sub rsp, 8: the stack is aligned again
                                0xff, 0xd7,              // call rdi
                                0x48, 0x83, 0xc4, 0x08,  // add rsp, 8
                                0xc3};                   // ret
  void* page = mmap(nullptr, kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) fail("no page for code");
  std::memcpy(page, code, sizeof(code));
  if (mprotect(page, kPage, PROT_READ | PROT_EXEC) != 0) fail("the page can not be made executable");
  reinterpret_cast<Target>(page)(reinterpret_cast<void*>(launch_from_jit), model);
  munmap(page, kPage);
}

using PluginRun = int (*)(float* data, int count);

// Where the library lay, so that one can tell whether the next lies in its place.
KEPT void* run_plugin(const Model& model, const std::string& path) {
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library) fail(dlerror());
  const auto run = reinterpret_cast<PluginRun>(dlsym(library, "plugin_run"));
  if (!run) fail(dlerror());
  Dl_info info = {};
  dladdr(reinterpret_cast<void*>(run), &info);
  CHECK(static_cast<cudaError_t>(run(model.hidden, kWidth)));
  dlclose(library);
  if (dlopen(path.c_str(), RTLD_NOW | RTLD_NOLOAD))
    std::fprintf(stderr, "two_callers: %s stays loaded\n", path.c_str());
  return info.dli_fbase;
}

void run_plugins(const Model& model) {
  const std::string folder = std::filesystem::read_symlink("/proc/self/exe").parent_path();
  CHECK(cudaStreamSynchronize(model.stream));  // the plugins run on streams of their own runtimes
  void* a = run_plugin(model, folder + "/plugin_a.so");
  void* b = run_plugin(model, folder + "/plugin_b.so");
  std::fprintf(stderr, "two_callers: plugin_b lies %s plugin_a lay\n", a == b ? "where" : "elsewhere than");
}

namespace {

struct Options {
  int steps = 8, deep = 0;
  bool graph = false, small_stack = false, throws = false, jit = false, dlclose = false;
};

[[noreturn]] void reject(const std::string& what) {
  std::fprintf(stderr, "two_callers: %s\n%s", what.c_str(), kUsage);
  std::exit(2);
}

int parse_number(const char* text) {
  char* end = nullptr;
  const long number = text ? std::strtol(text, &end, 10) : 0;
  if (!text || *end || number < 1 || number > 1000000) reject("a number from 1 to 1000000 is missing");
  return static_cast<int>(number);
}

bool set_flag(const std::string& name, Options& options) {
  if (name == "--graph") return options.graph = true;
  if (name == "--small-stack") return options.small_stack = true;
  if (name == "--throw") return options.throws = true;
  if (name == "--jit") return options.jit = true;
  if (name == "--dlclose") return options.dlclose = true;
  return false;
}

Options parse_options(char** arguments) {
  Options options;
  while (const char* argument = *++arguments) {
    if (!std::strcmp(argument, "--deep")) {
      options.deep = parse_number(*++arguments);
      if (options.deep > 50000) reject("so deep a recursion would overflow the stack");
    } else if (argument[0] != '-') {
      options.steps = parse_number(argument);
    } else if (!set_flag(argument, options)) {
      reject(std::string("unknown option ") + argument);
    }
  }
  return options;
}

// Numbers of a fixed sequence, in [-width, width).
float* upload_numbers(size_t count, float width, uint32_t seed) {
  std::vector<float> numbers(count);
  for (float& number : numbers) {
    seed = seed * 1664525u + 1013904223u;
    number = (static_cast<float>(seed >> 8) * 0x1p-23f - 1.0f) * width;
  }
  void* data = nullptr;
  CHECK(cudaMalloc(&data, count * sizeof(float)));
  CHECK(cudaMemcpy(data, numbers.data(), count * sizeof(float), cudaMemcpyHostToDevice));
  return static_cast<float*>(data);
}

Model make_model() {
  constexpr float kWide = 0.25f;  // large enough that the activations do not fade
  Model model{};
  model.attention_weights = upload_numbers(kLayers * kMatrix, kWide, 1);
  model.mlp_weights = upload_numbers(kLayers * kMatrix, kWide, 2);
  model.hidden = upload_numbers(kWidth, 1.0f, 3);
  model.inner = upload_numbers(kWidth, 1.0f, 4);
  CHECK(cudaStreamCreateWithFlags(&model.stream, cudaStreamNonBlocking));
  return model;
}

void begin_capture(const Model& model) { CHECK(cudaStreamBeginCapture(model.stream, cudaStreamCaptureModeGlobal)); }

cudaGraphExec_t end_capture(const Model& model) {
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t exec = nullptr;
  CHECK(cudaStreamEndCapture(model.stream, &graph));
  CHECK(cudaGraphInstantiate(&exec, graph, 0));
  CHECK(cudaGraphDestroy(graph));
  return exec;
}

void replay(const Model& model, cudaGraphExec_t exec, int times) {
  for (int i = 0; i < times; ++i) CHECK(cudaGraphLaunch(exec, model.stream));
  CHECK(cudaStreamSynchronize(model.stream));
  CHECK(cudaGraphExecDestroy(exec));
}

// FNV-1a over the bits of the activations.
uint32_t checksum(const Model& model) {
  uint32_t numbers[kWidth], sum = 2166136261u;
  CHECK(cudaStreamSynchronize(model.stream));
  CHECK(cudaMemcpy(numbers, model.hidden, sizeof(numbers), cudaMemcpyDeviceToHost));
  for (const uint32_t number : numbers) sum = (sum ^ number) * 16777619u;
  return sum;
}

void report(const Model& model, const char* part) { std::printf("tokens[%s]: %u\n", part, checksum(model)); }

void report(const Model& model, const char* part, int launches) {
  report(model, part);
  std::printf("launches[%s]: %d\n", part, launches);
}

void run_odd_places(Model& model, const Options& options) {
  if (options.deep) {
    if (descend(model, options.deep) != options.deep) fail("the recursion ended early");
    report(model, "deep", kAlone);
  }
  if (options.small_stack) {
    run_on_small_stack(model);
    report(model, "small-stack", kAlone);
  }
  if (options.throws) {
    run_throw(model);
    report(model, "throw", 3 * kAlone);
  }
  if (options.jit) {
    run_jit(model);
    report(model, "jit", kAlone);
  }
  if (options.dlclose) {
    run_plugins(model);
    run_plugins(model);
    report(model, "dlclose", 4);
  }
}

}  // namespace

int main(int, char** argv) {
  const Options options = parse_options(argv);
  Model model = make_model();
  if (options.graph) {
    begin_capture(model);
    run_step(model);
    replay(model, end_capture(model), options.steps);
  } else {
    for (int step = 0; step < options.steps; ++step) run_step(model);
  }
  report(model, "steps");
  for (const char* caller : {"attention", "mlp"}) std::printf("launches[%s]: %d\n", caller, kLayers * options.steps);
  run_odd_places(model, options);
  return 0;
}
