// graph_zoo: every way to build, change and launch CUDA graphs, and every way to launch without one, each as a case
// under an NVTX range of its name. It prints where a profiler must put each kernel, copy and memset, as JSON, one
// object a line:
//   {"case":"child_nested","phase":"replay","path":["child_nested","outer","inner","one"],"kind":"kernel",
//    "name":"zoo_kernel<420>","count":2}
// The path is that of the ranges open on the thread that created the node (or launched the kernel without a graph), the
// phase that of the launch. What the rows say of kernels is checked against counters that the kernels raise themselves.
//
//   graph_zoo [--loops N] [CASE...]    all cases, or those named; N graphs in case `recreated`, 20 if not given
//   graph_zoo --list                   the names of the cases
//
// Exit status: 0 fine, 1 an error of CUDA or a wrong expectation, 2 wrong usage.

#include <set>

#include "graph_zoo_base.cuh"
#include "graph_zoo_build.cuh"
#include "graph_zoo_conditional.cuh"
#include "graph_zoo_eager.cuh"
#include "graph_zoo_replay.cuh"
#include "graph_zoo_update.cuh"

namespace {

struct CaseEntry {
  const char* name;
  void (*run)(Case&);
};

const CaseEntry kCases[] = {
    {"eager_launches", EagerLaunches},
    {"eager_programmatic", EagerProgrammatic},
    {"eager_streams", EagerStreams},
    {"eager_threads", EagerThreads},
    {"eager_copies", EagerCopies},
    {"eager_two_devices", EagerTwoDevices},

    {"captured_linear", CapturedLinear},
    {"captured_launches", CapturedLaunches},
    {"captured_programmatic", CapturedProgrammatic},
    {"captured_copies", CapturedCopies},
    {"captured_allocation", CapturedAllocation},
    {"shared_kernel", SharedKernel},
    {"hand_built", HandBuilt},
    {"hand_built_copies", HandBuiltCopies},
    {"hand_built_holes", HandBuiltHoles},
    {"empty_graph", EmptyGraph},
    {"host_nodes", HostNodes},
    {"event_nodes", EventNodes},

    {"child_one", ChildOne},
    {"child_two", ChildTwo},
    {"child_nested", ChildNested},
    {"child_twice", ChildTwice},
    {"conditional_if", ConditionalIf},
    {"conditional_if_else", ConditionalIfElse},
    {"conditional_while", ConditionalWhile},
    {"conditional_switch", ConditionalSwitch},
    {"conditional_captured", ConditionalCaptured},
    {"conditional_copies", ConditionalCopies},
    {"conditional_phases", ConditionalPhases},
    {"nest_children", NestChildren},
    {"nest_children_b_first", NestChildrenBFirst},
    {"nest_children_bottom_up", NestChildrenBottomUp},
    {"nest_ifs", NestIfs},
    {"nest_ifs_b_first", NestIfsBFirst},
    {"nest_child_beside_if", NestChildBesideIf},
    {"nest_child_in_if", NestChildInIf},
    {"nest_if_beside_child", NestIfBesideChild},
    {"nest_switch", NestSwitch},
    {"nest_while", NestWhile},

    {"clone", Clone},
    {"two_execs", TwoExecs},
    {"destroyed_graph", DestroyedGraph},
    {"instantiate_calls", InstantiateCalls},
    {"update_captured", UpdateCaptured},
    {"update_child", UpdateChild},
    {"child_set_params", ChildSetParams},
    {"kernel_set_params", KernelSetParams},
    {"kernel_set_params_driver", KernelSetParamsDriver},
    {"copy_set_params", CopySetParams},
    {"template_set_params", TemplateSetParams},
    {"template_set_params_elsewhere", TemplateSetParamsElsewhere},
    {"node_switched_off", NodeSwitchedOff},

    {"fork_join", ForkJoin},
    {"two_threads", TwoThreads},
    {"capture_elsewhere", CaptureElsewhere},
    {"capture_handed_over", CaptureHandedOver},
    {"phases", Phases},
    {"recreated", Recreated},
};

struct Options {
  bool list = false;
  int loops = 20;
  std::set<std::string> cases;  // none: all
};

[[noreturn]] void WrongUsage(const std::string& what) {
  std::fprintf(stderr, "graph_zoo: %s\nusage: graph_zoo [--loops N] [CASE...] | graph_zoo --list\n", what.c_str());
  std::exit(2);
}

int ParseLoops(const char* text) {
  char* end = nullptr;
  const long loops = text ? std::strtol(text, &end, 10) : 0;
  if (!text || *end != '\0' || loops < 1 || loops > 100000000) WrongUsage("--loops needs a number from 1 on");
  return static_cast<int>(loops);
}

Options ParseOptions(char** arguments) {
  Options options;
  for (++arguments; *arguments; ++arguments) {
    const std::string argument = *arguments;
    if (argument == "--list") {
      options.list = true;
    } else if (argument == "--loops") {
      options.loops = ParseLoops(*++arguments);
    } else if (std::none_of(std::begin(kCases), std::end(kCases), [&](const auto& c) { return argument == c.name; })) {
      WrongUsage("there is no case " + argument);
    } else {
      options.cases.insert(argument);
    }
  }
  return options;
}

bool HasDevice() {
  int devices = 0;
  const cudaError_t result = cudaGetDeviceCount(&devices);
  if (result == cudaSuccess && devices > 0) return true;
  std::fprintf(stderr, "graph_zoo: no GPU: %s\n", result == cudaSuccess ? "none found" : cudaGetErrorString(result));
  return false;
}

// Stands in the profile too, so it has its rows as the cases have.
void SetUp(Expectations& expectations) {
  const Range range("set_up");
  const Range phase("phase:set_up");
  CHECK(cudaMalloc(&g_counters[0], kSlots * sizeof(int)));
  CHECK(cudaMemset(g_counters[0], 0, kSlots * sizeof(int)));
  CHECK(cudaDeviceSynchronize());
  expectations.Add({"set_up", "set_up", "set_up", "memset", "Memset"}, 1);
}

void RunCase(const CaseEntry& entry, const Options& options, Expectations& expectations) {
  std::fprintf(stderr, "graph_zoo: %s\n", entry.name);
  Case c(entry.name, options.loops, expectations);
  try {
    const Range range(entry.name);
    entry.run(c);
    CHECK(cudaDeviceSynchronize());
  } catch (const Unsupported& reason) {
    std::fprintf(stderr, "graph_zoo: %s is skipped: %s\n", entry.name, reason.what());
    expectations.Skip(entry.name, reason.what());
  }
}

// How often each kernel ran, over all devices.
std::vector<long> Executions(Expectations& expectations) {
  const Range range("tear_down");
  const Range phase("phase:tear_down");
  std::vector<long> executions(kSlots);
  int* on_host = nullptr;
  CHECK(cudaMallocHost(&on_host, kSlots * sizeof(int)));
  for (const int* counters : g_counters) {
    if (!counters) continue;
    CHECK(cudaMemcpy(on_host, counters, kSlots * sizeof(int), cudaMemcpyDeviceToHost));
    expectations.Add({"tear_down", "tear_down", "tear_down", "memcpy", "Memcpy DtoH"}, 1);
    for (int slot = 0; slot < kSlots; ++slot) executions[slot] += on_host[slot];
  }
  CHECK(cudaFreeHost(on_host));
  return executions;
}

int Main(const Options& options) {
  if (!HasDevice()) return 1;
  Expectations expectations;
  SetUp(expectations);
  for (const CaseEntry& entry : kCases) {
    if (options.cases.empty() || options.cases.count(entry.name)) RunCase(entry, options, expectations);
  }
  const bool matches = expectations.Matches(Executions(expectations));
  expectations.Print();
  return matches ? 0 : 1;
}

}  // namespace

int main(int, char** argv) {
  const Options options = ParseOptions(argv);
  if (options.list) {
    for (const CaseEntry& entry : kCases) std::puts(entry.name);
    return 0;
  }
  try {
    return Main(options);
  } catch (const Unsupported& error) {  // outside a case there is nothing to skip
    std::fprintf(stderr, "graph_zoo: %s\n", error.what());
    return 1;
  }
}
