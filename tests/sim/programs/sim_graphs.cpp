// Graphs: captured, made by hand, nested, conditional, cloned, instantiated twice, updated, with new parameters, and
// captured by two threads at once. Each case is one outer range; what it captures runs in the phase "replay" only.
#include <functional>
#include <thread>

#include "sim_program.h"

namespace {

CUgraph capture(CUstream stream, const std::function<void()>& work) {
  CUgraph graph;
  CHECK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
  work();
  CHECK(cuStreamEndCapture(stream, &graph));
  return graph;
}

void capture_into(CUgraph graph, CUstream stream, const std::function<void()>& work) {
  CUgraph same;
  CHECK(cuStreamBeginCaptureToGraph(stream, graph, nullptr, nullptr, 0, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
  work();
  CHECK(cuStreamEndCapture(stream, &same));
}

CUgraph make_graph() {
  CUgraph graph;
  CHECK(cuGraphCreate(&graph, 0));
  return graph;
}

CUgraphExec instantiate(CUgraph graph) {
  CUgraphExec exec;
  CHECK(cuGraphInstantiateWithFlags(&exec, graph, 0));
  return exec;
}

CUDA_KERNEL_NODE_PARAMS parameters(const std::string& name) {
  CUDA_KERNEL_NODE_PARAMS kernel{};
  kernel.func = function(name);
  kernel.gridDimX = kernel.gridDimY = kernel.gridDimZ = kernel.blockDimX = kernel.blockDimY = kernel.blockDimZ = 1;
  return kernel;
}

CUgraphNode add(CUgraph graph, const std::string& layer, const std::string& name) {
  CUgraphNode node;
  CUDA_KERNEL_NODE_PARAMS kernel = parameters(name);
  Range range(layer);
  CHECK(cuGraphAddKernelNode(&node, graph, nullptr, 0, &kernel));
  return node;
}

void add_child(CUgraph graph, CUgraph child) {
  CUgraphNode node;
  CHECK(cuGraphAddChildGraphNode(&node, graph, nullptr, 0, child));
}

void launch_in(const std::string& layer, const std::string& name, CUstream stream) {
  Range range(layer);
  launch_only(name, stream);
}

void replay(CUgraphExec exec, int times = 1, CUstream stream = nullptr) {
  Phase phase("replay", true);
  for (int i = 0; i < times; ++i) CHECK(cuGraphLaunch(exec, stream));
  CHECK(cuStreamSynchronize(stream));
}

// What the open case must find under its own range.
void expect_in(const Path& path, const std::string& name, long count = 1, const char* kind = "kernel") {
  Path whole = open_path;
  whole.insert(whole.end(), path.begin(), path.end());
  expect("replay", whole, name, count, kind);
}

// One layer is called twice; the capture happens in a phase that its kernels must not end up in.
void captured() {
  CUstream stream = make_stream();
  CUgraph graph;
  {
    Phase phase("capturing");
    graph = capture(stream, [&] {
      launch_only("embed", stream);
      for (int call = 0; call < 2; ++call) {
        Range layer("layer");
        launch_in("attention", "softmax", stream);
        launch_in("mlp", "gemm", stream);
      }
      CHECK(cuMemsetD8Async(0x1000, 0, 64, stream));
    });
  }
  CUgraphExec exec = instantiate(graph);
  CHECK(cuGraphDestroy(graph));
  replay(exec, 3, stream);
  launch("eager_behind", stream);
  expect_in({}, "embed", 3);
  expect_in({"layer", "attention"}, "softmax", 6);
  expect_in({"layer", "mlp"}, "gemm", 6);
  expect_in({}, "Memset", 3, "memset");
  CHECK(cuGraphExecDestroy(exec));
}

void by_hand() {
  CUgraph graph = make_graph();
  CUgraphNode node;
  add(graph, "first", "by_hand_a");
  CUDA_MEMCPY3D copy{};
  copy.srcMemoryType = CU_MEMORYTYPE_HOST;
  copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  copy.WidthInBytes = 128, copy.Height = copy.Depth = 1;
  CUDA_MEMSET_NODE_PARAMS set{};
  set.elementSize = 4, set.width = 32, set.height = 1;
  {
    Range range("copies");
    CHECK(cuGraphAddMemcpyNode(&node, graph, nullptr, 0, &copy, nullptr));
    CHECK(cuGraphAddMemsetNode(&node, graph, nullptr, 0, &set, nullptr));
    CHECK(cuGraphAddEmptyNode(&node, graph, nullptr, 0));
  }
  CHECK(cuGraphDestroyNode(add(graph, "removed", "removed")));  // leaves a gap in the numbers
  add(graph, "last", "by_hand_b");
  replay(instantiate(graph), 2);
  expect_in({"first"}, "by_hand_a", 2);
  expect_in({"copies"}, "Memcpy HtoD", 2, "memcpy");
  expect_in({"copies"}, "Memset", 2, "memset");
  expect_in({"last"}, "by_hand_b", 2);
}

// The first child holds another one, so that level by level and depth first number the second child differently.
CUgraph nested_graph() {
  CUgraph inner = make_graph(), first = make_graph(), second = make_graph(), outer = make_graph();
  add(inner, "inner", "inner_a");
  add(inner, "inner", "inner_b");
  add(first, "first", "first_a");
  add_child(first, inner);
  add(first, "first", "first_b");
  add(second, "second", "second_a");
  add(outer, "outer", "outer_a");
  add_child(outer, first);
  add_child(outer, second);
  add(outer, "outer", "outer_b");
  return outer;
}

void expect_nested(long count) {
  for (const char* layer : {"inner", "first", "outer"}) {
    for (const char* end : {"_a", "_b"}) expect_in({layer}, std::string(layer) + end, count);
  }
  expect_in({"second"}, "second_a", count);
}

void child_graphs() {
  CUgraph graph = nested_graph();
  replay(instantiate(graph), 2);
  replay(instantiate(graph), 1);
  expect_nested(3);
}

void conditionals() {
  CUstream stream = make_stream();
  CUgraph graph = make_graph(), body[2], loop[1], in_loop[3];
  unsigned never_once[] = {0, 1}, three_times[] = {3}, second_only[] = {0, 1, 0};
  add(graph, "decide", "decide");
  sim_add_conditional(graph, 2, never_once, body);
  sim_add_conditional(graph, 1, three_times, loop);
  add(graph, "after", "after");
  add(body[0], "then", "then");
  add(body[1], "else", "else");
  capture_into(loop[0], stream, [&] { launch_in("loop", "step", stream); });
  sim_add_conditional(loop[0], 3, second_only, in_loop);
  for (int i = 0; i < 3; ++i) {
    unsigned once[] = {1};
    CUgraph nested[1];
    add(in_loop[i], "case" + std::to_string(i), "case_kernel");
    sim_add_conditional(in_loop[i], 1, once, nested);
    for (int n = 0; n <= i; ++n) add(nested[0], "nested" + std::to_string(i), "nested_kernel");
  }
  CUgraph child = make_graph();
  add(child, "child_of_loop", "child_of_loop");
  add_child(loop[0], child);
  replay(instantiate(graph), 2, stream);
  expect_in({"decide"}, "decide", 2);
  expect_in({"else"}, "else", 2);
  expect_in({"loop"}, "step", 6);
  expect_in({"case1"}, "case_kernel", 6);
  expect_in({"nested1"}, "nested_kernel", 12);
  expect_in({"child_of_loop"}, "child_of_loop", 6);
  expect_in({"after"}, "after", 2);
}

// The clone outlives the graph it was made of.
void cloned() {
  CUgraph graph = nested_graph(), clone;
  CHECK(cuGraphClone(&clone, graph));
  CHECK(cuGraphDestroy(graph));
  add(clone, "late", "late");
  replay(instantiate(clone), 2);
  expect_nested(2);
  expect_in({"late"}, "late", 2);
}

void instantiated_twice() {
  CUstream stream = make_stream();
  CUgraph graph = capture(stream, [&] { launch_in("layer", "twice", stream); });
  CUgraphExec first = instantiate(graph), second = instantiate(graph);
  replay(first, 1, stream);
  CHECK(cuGraphExecDestroy(first));
  replay(second, 2, stream);
  expect_in({"layer"}, "twice", 3);
}

CUgraph two_kernels(CUstream stream, const std::string& layer, const std::string& name) {
  CUgraph child = make_graph();
  add(child, layer, name + "_child");
  CUgraph graph = capture(stream, [&] { launch_in(layer, name, stream); });
  add_child(graph, child);
  return graph;
}

// The second update finds nothing to change but belongs to other layers. The last one fails: the graphs differ.
void updated() {
  CUstream stream = make_stream();
  CUgraph old_graph = two_kernels(stream, "old", "kernel_before"),
          new_graph = two_kernels(stream, "new", "kernel_after");
  CUgraphExec exec = instantiate(old_graph);
  CUgraphExecUpdateResultInfo info;
  replay(exec, 1, stream);
  CHECK(cuGraphExecUpdate(exec, new_graph, &info));
  replay(exec, 2, stream);
  CHECK(cuGraphExecUpdate(exec, two_kernels(stream, "newest", "kernel_after"), &info));
  replay(exec, 1, stream);
  if (cuGraphExecUpdate(exec, make_graph(), &info) == CUDA_SUCCESS) _exit(1);
  replay(exec, 1, stream);
  replay(instantiate(old_graph), 1, stream);
  for (const char* end : {"", "_child"}) {
    expect_in({"old"}, std::string("kernel_before") + end, 2);
    expect_in({"new"}, std::string("kernel_after") + end, 2);
    expect_in({"newest"}, std::string("kernel_after") + end, 2);
  }
}

void new_parameters() {
  CUgraph graph = make_graph();
  add(graph, "kept", "kept");
  CUgraphNode node = add(graph, "original", "original");
  CUgraphExec exec = instantiate(graph);
  replay(exec);
  {
    Range range("patch");
    CUDA_KERNEL_NODE_PARAMS kernel = parameters("patched");
    CHECK(cuGraphExecKernelNodeSetParams(exec, node, &kernel));
  }
  replay(exec, 2);
  {
    Range range("patch_of_graph");  // for later instantiations only
    CUDA_KERNEL_NODE_PARAMS kernel = parameters("patched_graph");
    CHECK(cuGraphKernelNodeSetParams(node, &kernel));
  }
  replay(exec);
  replay(instantiate(graph));
  expect_in({"kept"}, "kept", 5);
  expect_in({"original"}, "original", 1);
  expect_in({"patch"}, "patched", 3);
  expect_in({"patch_of_graph"}, "patched_graph", 1);
}

void in_threads() {
  std::vector<std::thread> threads;
  for (int i = 0; i < 2; ++i) {
    threads.emplace_back([i] {
      start_cuda();
      Range outer("in_threads"), range("thread" + std::to_string(i));
      CUstream stream = make_stream();
      CUgraph graph = capture(stream, [&] {
        for (int n = 0; n < 200; ++n) launch_in("layer" + std::to_string(n % 10), "in_thread", stream);
      });
      CUgraphExec exec = instantiate(graph);
      replay(exec, 5, stream);
      for (int n = 0; n < 10; ++n) expect_in({"layer" + std::to_string(n)}, "in_thread", 100);
      CHECK(cuGraphExecDestroy(exec));
    });
  }
  for (std::thread& thread : threads) thread.join();
}

struct Case {
  const char* name;
  void (*run)();
};
constexpr Case kCases[] = {
    {"captured", captured},     {"by_hand", by_hand},
    {"children", child_graphs}, {"conditionals", conditionals},
    {"cloned", cloned},         {"instantiated_twice", instantiated_twice},
    {"updated", updated},       {"new_parameters", new_parameters},
};

bool wanted(int count, char** names, std::string_view name) {
  if (count < 2) return true;
  for (int i = 1; i < count; ++i) {
    if (name == names[i]) return true;
  }
  return false;
}

}  // namespace

// Arguments: names of the cases to run; none: all.
int main(int argc, char** argv) {
  process_phase = "startup";
  start_cuda();
  for (const Case& one : kCases) {
    if (!wanted(argc, argv, one.name)) continue;
    Range range(one.name);
    one.run();
    process_phase = "(none)";
  }
  if (wanted(argc, argv, "in_threads")) in_threads();
  expectations.print();
}
