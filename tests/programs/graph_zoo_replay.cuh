// Cases of graph_zoo about what else a graph holds (copies, allocations, host calls, events) and about its replays:
// their phases, and graphs that come and go.
#ifndef LAMINA_TESTS_PROGRAMS_GRAPH_ZOO_REPLAY_CUH_
#define LAMINA_TESTS_PROGRAMS_GRAPH_ZOO_REPLAY_CUH_

#include <atomic>

#include "graph_zoo_base.cuh"
#include "graph_zoo_eager.cuh"
#include "graph_zoo_update.cuh"

// ---- Nodes other than kernels ----

inline void CapturedCopies(Case& c) {
  const Stream stream = MakeStream();
  const Buffers buffers;
  const Graph graph = Capture(stream, [&] {
    {
      const Range range("in");
      CHECK(cudaMemcpyAsync(buffers.device_a, buffers.host_in, kBytes, cudaMemcpyHostToDevice, stream));
      LaunchUnder("kernel", Zoo<1000>(), stream);
    }
    {
      const Range range("across");
      CHECK(cudaMemcpyAsync(buffers.device_b, buffers.device_a, kBytes, cudaMemcpyDeviceToDevice, stream));
    }
    {
      const Range range("out");
      CHECK(cudaMemcpyAsync(buffers.host_out, buffers.device_b, kBytes, cudaMemcpyDeviceToHost, stream));
      LaunchUnder("clear", Zoo<1001>(), stream);
      const Range clear("clear");
      CHECK(cudaMemsetAsync(buffers.device_a, 0, kBytes, stream));
      CHECK(cudaMemsetAsync(buffers.device_b, 0, kBytes, stream));
    }
  });
  const Exec exec = Instantiate(graph);
  c.Replay(exec, stream, 2);
  VERIFY(buffers.HostOutIs('i'));
  c.ExpectCopy("in", "HtoD", 2);
  c.Expect("in/kernel", Zoo<1000>(), 2);
  c.ExpectCopy("across", "DtoD", 2);
  c.ExpectCopy("out", "DtoH", 2);
  c.Expect("out/clear", Zoo<1001>(), 2);
  c.ExpectMemset("out/clear", 2 * 2);
}

inline void HandBuiltCopies(Case& c) {
  const Stream stream = MakeStream();
  const Buffers buffers;
  const Graph graph = MakeGraph();
  Node in = nullptr, clear = nullptr, across = nullptr, out = nullptr;
  {
    const Range range("in");
    CHECK(cudaGraphAddMemcpyNode1D(&in, graph, nullptr, 0, buffers.device_a, buffers.host_in, kBytes,
                                   cudaMemcpyHostToDevice));
  }
  const Node kernel = AddUnder("kernel", graph, Zoo<1010>(), {in});
  {
    const Range range("clear");
    const cudaMemsetParams params = MemsetParams(buffers.device_b, 'c');
    CHECK(cudaGraphAddMemsetNode(&clear, graph, &kernel, 1, &params));
  }
  {
    const Range range("across");  // the general call
    cudaGraphNodeParams params = {};
    params.type = cudaGraphNodeTypeMemcpy;
    params.memcpy.copyParams = CopyParams(buffers.device_b, buffers.device_a);
    CHECK(cudaGraphAddNode(&across, graph, &clear, nullptr, 1, &params));
  }
  {
    const Range range("out");
    CHECK(cudaGraphAddMemcpyNode1D(&out, graph, &across, 1, buffers.host_out, buffers.device_b, kBytes,
                                   cudaMemcpyDeviceToHost));
  }
  const Exec exec = Instantiate(graph);
  c.Replay(exec, stream, 2);
  VERIFY(buffers.HostOutIs('i'));
  c.ExpectCopy("in", "HtoD", 2);
  c.Expect("kernel", Zoo<1010>(), 2);
  c.ExpectMemset("clear", 2);
  c.ExpectCopy("across", "DtoD", 2);
  c.ExpectCopy("out", "DtoH", 2);
}

// Memory taken and given back inside the graph: nodes that leave no record.
inline void CapturedAllocation(Case& c) {
  const Stream stream = MakeStream();
  const Graph graph = Capture(stream, [&] {
    const Range range("layer");
    void* memory = nullptr;
    CHECK(cudaMallocAsync(&memory, kBytes, stream));
    LaunchUnder("before", Zoo<1020>(), stream);
    CHECK(cudaMemsetAsync(memory, 0, kBytes, stream));
    CHECK(cudaFreeAsync(memory, stream));
    LaunchUnder("after", Zoo<1021>(), stream);
  });
  const Exec exec = Instantiate(graph);
  c.Replay(exec, stream, 2);
  c.Expect("layer/before", Zoo<1020>(), 2);
  c.ExpectMemset("layer", 2);
  c.Expect("layer/after", Zoo<1021>(), 2);
}

inline void EmptyGraph(Case& c) {
  const Stream stream = MakeStream();
  const Graph graph = MakeGraph();
  const Exec exec = Instantiate(graph);
  c.Replay(exec, stream, 2);
  const Graph captured = Capture(stream, [] {});
  const Exec exec_captured = Instantiate(captured);
  c.Replay(exec_captured, stream, 2);
  const Range phase("phase:replay");
  LaunchUnder("eager", Zoo<1500>(), stream);  // the case has one row at least
  CHECK(cudaStreamSynchronize(stream));
  c.Expect("eager", Zoo<1500>(), 1);
}

inline void CountCall(void* calls) { ++*static_cast<std::atomic<int>*>(calls); }

inline void HostNodes(Case& c) {
  const Stream stream = MakeStream();
  std::atomic<int> calls{0};
  const Graph only_host = Capture(stream, [&] {
    const Range range("host");
    CHECK(cudaLaunchHostFunc(stream, CountCall, &calls));
  });
  const Graph mixed = Capture(stream, [&] {
    LaunchUnder("before", Zoo<1510>(), stream);
    CHECK(cudaLaunchHostFunc(stream, CountCall, &calls));
    LaunchUnder("after", Zoo<1511>(), stream);
  });
  const Graph by_hand = MakeGraph();
  Node empty = nullptr, host = nullptr;
  CHECK(cudaGraphAddEmptyNode(&empty, by_hand, nullptr, 0));
  cudaHostNodeParams params = {};
  params.fn = CountCall;
  params.userData = &calls;
  CHECK(cudaGraphAddHostNode(&host, by_hand, &empty, 1, &params));
  AddUnder("by_hand", by_hand, Zoo<1512>(), {host});
  for (const cudaGraph_t graph : {only_host.get(), mixed.get(), by_hand.get()}) {
    const Exec exec = Instantiate(graph);
    c.Replay(exec, stream, 2);
  }
  VERIFY(calls == 3 * 2);
  c.Expect("before", Zoo<1510>(), 2);
  c.Expect("after", Zoo<1511>(), 2);
  c.Expect("by_hand", Zoo<1512>(), 2);
}

// Events from outside the graph are nodes of it.
inline void EventNodes(Case& c) {
  const Stream stream = MakeStream();
  const Event captured_event = MakeEvent(), event = MakeEvent();
  const Graph captured = Capture(stream, [&] {
    LaunchUnder("before", Zoo<1520>(), stream);
    CHECK(cudaEventRecordWithFlags(captured_event, stream, cudaEventRecordExternal));
    LaunchUnder("after", Zoo<1521>(), stream);
  });
  const Graph by_hand = MakeGraph();
  Node wait = nullptr, record = nullptr;
  CHECK(cudaGraphAddEventWaitNode(&wait, by_hand, nullptr, 0, captured_event));
  const Node kernel = AddUnder("by_hand", by_hand, Zoo<1522>(), {wait});
  CHECK(cudaGraphAddEventRecordNode(&record, by_hand, &kernel, 1, event));
  const Exec exec_captured = Instantiate(captured), exec_by_hand = Instantiate(by_hand);
  for (int i = 0; i < 2; ++i) {
    c.Replay(exec_captured, stream);
    c.Replay(exec_by_hand, stream);
    CHECK(cudaEventSynchronize(event));
  }
  c.Expect("before", Zoo<1520>(), 2);
  c.Expect("after", Zoo<1521>(), 2);
  c.Expect("by_hand", Zoo<1522>(), 2);
}

// ---- Replays ----

// The phase is that of the launch, though another one was open when the graph was captured and instantiated.
inline void Phases(Case& c) {
  const Stream stream = MakeStream();
  Graph graph;
  Exec exec;
  {
    const Range phase("phase:capture");
    graph = Capture(stream, [&] {
      LaunchUnder("attention", Zoo<1200>(), stream);
      const Range inner_phase("phase:capture_inner");
      LaunchUnder("mlp", Zoo<1201>(), stream);
    });
    exec = Instantiate(graph);
  }
  c.Replay(exec, stream, 1, "prefill");
  for (int i = 0; i < 3; ++i) {  // as a server does it: a replay, then something eager, and no waiting
    const Range phase("phase:decode");
    CHECK(cudaGraphLaunch(exec, stream));
    LaunchUnder("sampler", Zoo<1202>(), stream);
  }
  CHECK(cudaStreamSynchronize(stream));
  c.Expect("attention", Zoo<1200>(), 1, "prefill");
  c.Expect("mlp", Zoo<1201>(), 1, "prefill");
  c.Expect("attention", Zoo<1200>(), 3, "decode");
  c.Expect("mlp", Zoo<1201>(), 3, "decode");
  c.Expect("sampler", Zoo<1202>(), 3, "decode");
}

// Graphs come and go, with the same kernels under ranges that change from one to the next: whoever keeps what belonged
// to a handle or an id that is used again puts them under the range of an earlier graph.
inline void Recreated(Case& c) {
  const Stream stream = MakeStream();
  const std::vector<Kernel> kernels = Zoos<1100, 1101>();
  for (int i = 0; i < c.loops(); ++i) {
    const std::string layer = "layer" + std::to_string(i % 3);
    const Kernel& kernel = kernels[i % 2];
    Graph graph = Capture(stream, [&] { LaunchUnder(layer, kernel, stream); });
    Graph child = MakeGraph();
    AddUnder(layer + "/child", child, Zoo<1102>());
    AddChild(graph, child);
    Exec exec = Instantiate(graph);
    if (i % 4 == 0) graph.Reset();  // so handles are freed before the launch, after it, and in either order
    if (i % 4 == 1) child.Reset();
    c.Replay(exec, stream);
    if (i % 4 == 2) graph.Reset();
    c.Expect(layer, kernel, 1);
    c.Expect(layer + "/child", Zoo<1102>(), 1);
  }
}

#endif  // LAMINA_TESTS_PROGRAMS_GRAPH_ZOO_REPLAY_CUH_
