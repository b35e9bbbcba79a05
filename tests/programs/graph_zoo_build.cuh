// Cases of graph_zoo that build graphs by capture, by hand, with child graphs, from several streams and threads.
#ifndef LAMINA_TESTS_PROGRAMS_GRAPH_ZOO_BUILD_CUH_
#define LAMINA_TESTS_PROGRAMS_GRAPH_ZOO_BUILD_CUH_

#include <condition_variable>

#include "graph_zoo_base.cuh"
#include "graph_zoo_eager.cuh"

// ---- Captured ----

inline void CapturedLinear(Case& c) {
  const Stream stream = MakeStream();
  const Graph graph = Capture(stream, [&] {
    const Range model("model");
    Launch(Zoo<200>(), stream);
    {
      const Range layer("layer0");
      LaunchUnder("attention", Zoo<201>(), stream);
      LaunchUnder("attention", Zoo<202>(), stream);
      LaunchUnder("mlp", Zoo<203>(), stream);
      Launch(Zoo<204>(), stream);  // the layer's own, after its parts
    }
    for (int call = 0; call < 2; ++call) {  // one module, called twice
      const Range shared("shared");
      Launch(Zoo<205>(), stream);
    }
  });
  const Exec exec = Instantiate(graph);
  c.Replay(exec, stream, 2);
  c.Expect("model", Zoo<200>(), 2);
  c.Expect("model/layer0/attention", Zoos<201, 202>(), 2);
  c.Expect("model/layer0/mlp", Zoo<203>(), 2);
  c.Expect("model/layer0", Zoo<204>(), 2);
  c.Expect("model/shared", Zoo<205>(), 4);
}

inline void CapturedLaunches(Case& c) {
  const Stream stream = MakeStream();
  const bool cooperative = HasCooperativeLaunch();
  const Graph graph = Capture(stream, [&] {
    LaunchUnder("chevrons", Zoo<210>(), stream, [](const Kernel&, cudaStream_t s) {
      zoo_kernel<210><<<1, kThreads, 0, s>>>(Counters());
      CHECK(cudaGetLastError());
    });
    LaunchUnder("runtime_ex", Zoo<211>(), stream, LaunchExC);
    LaunchUnder("driver", Zoo<212>(), stream, LaunchDriver);
    LaunchUnder("driver_ex", Zoo<213>(), stream, LaunchDriverEx);
    if (cooperative) LaunchUnder("cooperative", Zoo<214>(), stream, LaunchCooperative);
  });
  const Exec exec = Instantiate(graph);
  c.Replay(exec, stream, 2);
  c.Expect("chevrons", Zoo<210>(), 2);
  c.Expect("runtime_ex", Zoo<211>(), 2);
  c.Expect("driver", Zoo<212>(), 2);
  c.Expect("driver_ex", Zoo<213>(), 2);
  if (cooperative) c.Expect("cooperative", Zoo<214>(), 2);
}

// An edge that lets the second kernel start before the first has ended.
inline void CapturedProgrammatic(Case& c) {
  const Stream stream = MakeStream();
  const Graph graph = Capture(stream, [&] {
    LaunchUnder("first", Zoo<220>(), stream);
    LaunchUnder("second", Zoo<221>(), stream, LaunchProgrammatic);
    LaunchUnder("third", Zoo<222>(), stream, LaunchProgrammatic);
  });
  const Exec exec = Instantiate(graph);
  c.Replay(exec, stream, 2);
  c.Expect("first", Zoo<220>(), 2);
  c.Expect("second", Zoo<221>(), 2);
  c.Expect("third", Zoo<222>(), 2);
}

// One kernel under two layers of one graph, some of them with the same last name.
inline void SharedKernel(Case& c) {
  const Stream stream = MakeStream();
  const Graph graph = Capture(stream, [&] {
    for (const char* layer : {"layer0/norm", "layer1/norm", "layer1/mlp"}) {
      const Range range(layer);
      Launch(Zoo<1300>(), stream);
    }
    const Range range("layer1/norm");
    Launch(Zoo<1300>(), stream);
  });
  const Exec exec = Instantiate(graph);
  c.Replay(exec, stream, 2);
  c.Expect("layer0/norm", Zoo<1300>(), 2);
  c.Expect("layer1/norm", Zoo<1300>(), 4);
  c.Expect("layer1/mlp", Zoo<1300>(), 2);
}

// ---- By hand ----

inline void HandBuilt(Case& c) {
  const Stream stream = MakeStream();
  const Graph graph = MakeGraph();
  const Node root = AddUnder("root", graph, Zoo<300>());
  const Node left = AddUnder("left", graph, Zoo<301>(), {root});
  Node right = nullptr;
  {
    const Range range("right");  // the general call
    Arguments arguments(Zoo<302>());
    cudaGraphNodeParams params = {};
    params.type = cudaGraphNodeTypeKernel;
    params.kernel.func = const_cast<void*>(Zoo<302>().function);
    params.kernel.gridDim = dim3(1);
    params.kernel.blockDim = dim3(kThreads);
    params.kernel.kernelParams = arguments.data();
    CHECK(cudaGraphAddNode(&right, graph, &root, nullptr, 1, &params));
  }
  AddUnder("join", graph, Zoo<303>(), {left, right});
  AddUnder("alone", graph, Zoo<304>());
  const Exec exec = Instantiate(graph);
  c.Replay(exec, stream, 2);
  c.Expect("root", Zoo<300>(), 2);
  c.Expect("left", Zoo<301>(), 2);
  c.Expect("right", Zoo<302>(), 2);
  c.Expect("join", Zoo<303>(), 2);
  c.Expect("alone", Zoo<304>(), 2);
}

// Edges against the order of creation, and holes in the numbering where nodes were removed before instantiation.
inline void HandBuiltHoles(Case& c) {
  const Stream stream = MakeStream();
  const Graph graph = MakeGraph();
  const Node last = AddUnder("last", graph, Zoo<310>());
  const Node removed = AddUnder("removed", graph, Zoo<311>(), {last});
  const Node first = AddUnder("first", graph, Zoo<312>());
  CHECK(cudaGraphAddDependencies(graph, &first, &last, nullptr, 1));
  CHECK(cudaGraphDestroyNode(removed));
  AddUnder("after_removal", graph, Zoo<313>(), {last});
  const Exec exec = Instantiate(graph);
  c.Replay(exec, stream, 2);
  c.Expect("last", Zoo<310>(), 2);
  c.Expect("first", Zoo<312>(), 2);
  c.Expect("after_removal", Zoo<313>(), 2);
}

// ---- Child graphs ----

// Two kernels under a range each, to be a child.
template <int First>
Graph TwoKernels(const std::string& layer) {
  Graph graph = MakeGraph();
  const Node node = AddUnder(layer + "/one", graph, Zoo<First>());
  AddUnder(layer + "/two", graph, Zoo<First + 1>(), {node});
  return graph;
}

template <int First>
void ExpectTwoKernels(Case& c, const std::string& layer, long count) {
  c.Expect(layer + "/one", Zoo<First>(), count);
  c.Expect(layer + "/two", Zoo<First + 1>(), count);
}

// The range around the adding of a child has no say: the child's nodes were created before, each under its own.
inline void ChildOne(Case& c) {
  const Stream stream = MakeStream();
  const Graph graph = MakeGraph();
  const Graph child = TwoKernels<400>("child");
  AddUnder("before", graph, Zoo<402>());
  {
    const Range range("adding");
    AddChild(graph, child);
  }
  AddUnder("after", graph, Zoo<403>());
  const Exec exec = Instantiate(graph);
  c.Replay(exec, stream, 2);
  c.Expect("before", Zoo<402>(), 2);
  ExpectTwoKernels<400>(c, "child", 2);
  c.Expect("after", Zoo<403>(), 2);
}

inline void ChildTwo(Case& c) {
  const Stream stream = MakeStream();
  const Graph graph = MakeGraph();
  const Graph left = TwoKernels<410>("left");
  const Graph right = Capture(stream, [&] { LaunchUnder("right", Zoo<412>(), stream); });
  AddUnder("own", graph, Zoo<413>(), {AddChild(graph, left), AddChild(graph, right)});
  const Exec exec = Instantiate(graph);
  c.Replay(exec, stream, 2);
  ExpectTwoKernels<410>(c, "left", 2);
  c.Expect("right", Zoo<412>(), 2);
  c.Expect("own", Zoo<413>(), 2);
}

inline void ChildNested(Case& c) {
  const Stream stream = MakeStream();
  const Graph inner = TwoKernels<420>("outer/inner");
  const Graph middle = MakeGraph();
  AddUnder("outer", middle, Zoo<422>(), {AddChild(middle, inner)});
  const Graph graph = MakeGraph();
  AddChild(graph, middle, {AddUnder("top", graph, Zoo<423>())});
  const Exec exec = Instantiate(graph);
  c.Replay(exec, stream, 2);
  ExpectTwoKernels<420>(c, "outer/inner", 2);
  c.Expect("outer", Zoo<422>(), 2);
  c.Expect("top", Zoo<423>(), 2);
}

// Both copies of the child keep the layers of its nodes.
inline void ChildTwice(Case& c) {
  const Stream stream = MakeStream();
  const Graph child = TwoKernels<430>("child");
  const Graph graph = MakeGraph();
  const Node first = AddChild(graph, child);
  const Node middle = AddUnder("between", graph, Zoo<432>(), {first});
  AddChild(graph, child, {middle});
  const Exec exec = Instantiate(graph);
  c.Replay(exec, stream, 2);
  ExpectTwoKernels<430>(c, "child", 4);
  c.Expect("between", Zoo<432>(), 2);
}

// ---- Several streams and threads ----

inline void ForkJoin(Case& c) {
  const Stream main = MakeStream(), side = MakeStream();
  const Event forked = MakeEvent(), joined = MakeEvent();
  const Graph graph = Capture(main, [&] {
    LaunchUnder("start", Zoo<900>(), main);
    CHECK(cudaEventRecord(forked, main));
    CHECK(cudaStreamWaitEvent(side, forked, 0));
    for (int i = 0; i < 2; ++i) {  // the branches in turn, so that only the ranges tell them apart
      LaunchUnder("main", Zoo<901>(), main);
      LaunchUnder("side", Zoo<902>(), side);
      LaunchUnder("side/both", Zoo<903>(), side);
      LaunchUnder("main/both", Zoo<903>(), main);
    }
    CHECK(cudaEventRecord(joined, side));
    CHECK(cudaStreamWaitEvent(main, joined, 0));
    LaunchUnder("end", Zoo<904>(), main);
  });
  const Exec exec = Instantiate(graph);
  c.Replay(exec, main, 2);
  c.Expect("start", Zoo<900>(), 2);
  c.Expect("main", Zoo<901>(), 4);
  c.Expect("side", Zoo<902>(), 4);
  c.Expect("main/both", Zoo<903>(), 4);
  c.Expect("side/both", Zoo<903>(), 4);
  c.Expect("end", Zoo<904>(), 2);
}

// Lets no thread on before all have come.
class Barrier {
 public:
  explicit Barrier(int threads) : missing_(threads) {}
  void Wait() {
    std::unique_lock<std::mutex> lock(mutex_);
    if (--missing_ == 0) all_here_.notify_all();
    all_here_.wait(lock, [this] { return missing_ <= 0; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable all_here_;
  int missing_;
};

inline void TwoThreads(Case& c) {
  Barrier both_begun(2), both_captured(2);
  const auto work = [&](const std::string& layer, const Kernel& own) {
    const Stream stream = MakeStream();
    const auto capture = [&] {
      const Range range(layer);
      Launch(Zoo<910>(), stream);
      both_begun.Wait();  // each has a node in an unfinished capture now
      const Range inner("own");
      Launch(own, stream);
      both_captured.Wait();
    };
    const Graph graph = Capture(stream, capture, cudaStreamCaptureModeThreadLocal);
    const Exec exec = Instantiate(graph);
    c.Replay(exec, stream, 3);
  };
  auto thread_a = c.InThread([&] { work("thread_a", Zoo<911>()); });
  auto thread_b = c.InThread([&] { work("thread_b", Zoo<912>()); });
  thread_a.get();
  thread_b.get();
  c.Expect("thread_a", Zoo<910>(), 3);
  c.Expect("thread_b", Zoo<910>(), 3);
  c.Expect("thread_a/own", Zoo<911>(), 3);
  c.Expect("thread_b/own", Zoo<912>(), 3);
}

inline void CaptureElsewhere(Case& c) {
  const Stream stream = MakeStream();
  Graph graph;
  c.InThread([&] { graph = Capture(stream, [&] { LaunchUnder("layer", Zoo<920>(), stream); }); }).get();
  const Exec exec = Instantiate(graph);
  c.Replay(exec, stream);
  c.InThread([&] { c.Replay(exec, stream, 2); }).get();
  c.Expect("layer", Zoo<920>(), 3);
}

// One capture to which two threads add: the range that counts is the one of the thread that makes the call.
inline void CaptureHandedOver(Case& c) {
  const Stream stream = MakeStream();
  const auto capture = [&] {
    const Range range("main_thread");
    Launch(Zoo<930>(), stream);
    c.InThread([&] { LaunchUnder("other_thread", Zoo<931>(), stream); }).get();
    Launch(Zoo<932>(), stream);
  };
  const Graph graph = Capture(stream, capture, cudaStreamCaptureModeRelaxed);
  const Exec exec = Instantiate(graph);
  c.Replay(exec, stream, 2);
  c.Expect("main_thread", Zoos<930, 932>(), 2);
  c.Expect("other_thread", Zoo<931>(), 2);
}

#endif  // LAMINA_TESTS_PROGRAMS_GRAPH_ZOO_BUILD_CUH_
