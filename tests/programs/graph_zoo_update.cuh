// Cases of graph_zoo that change a graph after it was built: clones, several instantiations, updates, new parameters.
#ifndef LAMINA_TESTS_PROGRAMS_GRAPH_ZOO_UPDATE_CUH_
#define LAMINA_TESTS_PROGRAMS_GRAPH_ZOO_UPDATE_CUH_

#include "graph_zoo_base.cuh"
#include "graph_zoo_eager.cuh"

// ---- Clones and instantiations ----

// The original is gone before its clone is instantiated, and the node of a clone can be found and changed.
inline void Clone(Case& c) {
  const Stream stream = MakeStream();
  Graph original = MakeGraph();
  const Node first = AddUnder("first", original, Zoo<700>());
  const Node second = AddUnder("second", original, Zoo<701>(), {first});
  cudaGraph_t handle = nullptr;
  {
    const Range range("cloning");  // no node is created here by the program
    CHECK(cudaGraphClone(&handle, original));
  }
  const Graph clone(handle);
  Node second_in_clone = nullptr;
  CHECK(cudaGraphNodeFindInClone(&second_in_clone, second, clone));
  AddUnder("added_to_clone", clone, Zoo<702>(), {second_in_clone});
  original.Reset();
  const Exec exec = Instantiate(clone);
  c.Replay(exec, stream, 2);
  c.Expect("first", Zoo<700>(), 2);
  c.Expect("second", Zoo<701>(), 2);
  c.Expect("added_to_clone", Zoo<702>(), 2);
}

// Two executable graphs of one graph, the second of which has a node more; a third of a clone with a child graph.
inline void TwoExecs(Case& c) {
  const Stream stream_a = MakeStream(), stream_b = MakeStream();
  const Graph child = MakeGraph(), graph = MakeGraph();
  AddUnder("child", child, Zoo<711>());
  const Node first = AddUnder("first", graph, Zoo<710>());
  const Node second = AddChild(graph, child, {first});
  const Exec exec_a = Instantiate(graph);
  AddUnder("later", graph, Zoo<712>(), {second});
  const Exec exec_b = Instantiate(graph);
  cudaGraph_t handle = nullptr;
  CHECK(cudaGraphClone(&handle, graph));
  const Graph clone(handle);
  const Exec exec_clone = Instantiate(clone);
  c.LaunchGraph(exec_a, stream_a);
  c.LaunchGraph(exec_b, stream_b);
  c.LaunchGraph(exec_clone, stream_a);
  CHECK(cudaDeviceSynchronize());
  c.Replay(exec_a, stream_a, 2);
  c.Expect("first", Zoo<710>(), 1 + 1 + 1 + 2);
  c.Expect("child", Zoo<711>(), 1 + 1 + 1 + 2);
  c.Expect("later", Zoo<712>(), 1 + 1);
}

inline void DestroyedGraph(Case& c) {
  const Stream stream = MakeStream();
  Graph graph = Capture(stream, [&] {
    LaunchUnder("first", Zoo<720>(), stream);
    LaunchUnder("second", Zoo<721>(), stream);
  });
  const Exec exec = Instantiate(graph);
  c.Replay(exec, stream);
  graph.Reset();
  c.Replay(exec, stream, 2);
  c.Expect("first", Zoo<720>(), 3);
  c.Expect("second", Zoo<721>(), 3);
}

// Each call that instantiates and each that launches.
inline void InstantiateCalls(Case& c) {
  const Stream stream = MakeStream();
  const Graph graph = Capture(stream, [&] { LaunchUnder("layer", Zoo<730>(), stream); });
  cudaGraphExec_t handles[4] = {};
  CHECK(cudaGraphInstantiateWithFlags(&handles[0], graph, cudaGraphInstantiateFlagAutoFreeOnLaunch));
  cudaGraphInstantiateParams params = {};
  params.flags = cudaGraphInstantiateFlagUpload;
  params.uploadStream = stream;
  CHECK(cudaGraphInstantiateWithParams(&handles[1], graph, &params));
  CHECK(cuGraphInstantiate(&handles[2], graph, 0));
  CHECK(cudaGraphInstantiate(&handles[3], graph, 0));
  CHECK(cudaGraphUpload(handles[3], stream));
  CHECK(cudaStreamSynchronize(stream));
  for (const cudaGraphExec_t handle : handles) {
    const Exec exec(handle);
    c.Replay(exec, stream);
    const Range phase("phase:replay");
    CHECK(cuGraphLaunch(exec, stream));
    CHECK(cudaGraphLaunch(exec, cudaStreamPerThread));
    CHECK(cudaGraphLaunch(exec, cudaStreamLegacy));
    CHECK(cudaDeviceSynchronize());
  }
  c.Expect("layer", Zoo<730>(), 4 * 4);
}

// ---- Updates of an executable graph ----

// Fails the program where the graphs do not fit.
inline void Update(cudaGraphExec_t exec, cudaGraph_t graph) {
  cudaGraphExecUpdateResultInfo info = {};
  CHECK(cudaGraphExecUpdate(exec, graph, &info));
  VERIFY(info.result == cudaGraphExecUpdateSuccess);
}

// First other kernels under other ranges, then the same kernels under yet others: no name tells these apart.
inline void UpdateCaptured(Case& c) {
  const Stream stream = MakeStream();
  const auto capture = [&](const std::string& layer, const Kernel& first, const Kernel& second) {
    return Capture(stream, [&] {
      LaunchUnder(layer + "/first", first, stream);
      LaunchUnder(layer + "/second", second, stream);
    });
  };
  const Graph before = capture("before", Zoo<800>(), Zoo<801>());
  const Exec exec = Instantiate(before);
  c.Replay(exec, stream);
  {
    const Graph after = capture("after", Zoo<802>(), Zoo<803>());
    const Range range("updating");  // of no account: the nodes were created above
    Update(exec, after);
  }  // the updated graph outlives the one it was updated from
  c.Replay(exec, stream, 2);
  const Graph again = capture("again", Zoo<802>(), Zoo<803>());
  Update(exec, again);
  c.Replay(exec, stream, 3);
  const Exec other = Instantiate(before);  // which no update has touched
  c.Replay(other, stream);
  c.Expect("before/first", Zoo<800>(), 1 + 1);
  c.Expect("before/second", Zoo<801>(), 1 + 1);
  c.Expect("after/first", Zoo<802>(), 2);
  c.Expect("after/second", Zoo<803>(), 2);
  c.Expect("again/first", Zoo<802>(), 3);
  c.Expect("again/second", Zoo<803>(), 3);
}

// A graph with a child that has a child.
template <int First>
Graph Family(const std::string& layer) {
  const Graph inner = MakeGraph(), child = MakeGraph();
  AddUnder(layer + "/child/inner", inner, Zoo<First>());
  AddChild(child, inner, {AddUnder(layer + "/child", child, Zoo<First + 1>())});
  Graph graph = MakeGraph();
  AddUnder(layer, graph, Zoo<First + 2>(), {AddChild(graph, child)});
  return graph;
}

template <int First>
void ExpectFamily(Case& c, const std::string& layer, long count) {
  c.Expect(layer + "/child/inner", Zoo<First>(), count);
  c.Expect(layer + "/child", Zoo<First + 1>(), count);
  c.Expect(layer, Zoo<First + 2>(), count);
}

inline void UpdateChild(Case& c) {
  const Stream stream = MakeStream();
  const Graph before = Family<810>("before"), after = Family<813>("after"), again = Family<813>("again");
  const Exec exec = Instantiate(before);
  c.Replay(exec, stream);
  Update(exec, after);
  c.Replay(exec, stream, 2);
  Update(exec, again);
  c.Replay(exec, stream, 3);
  ExpectFamily<810>(c, "before", 1);
  ExpectFamily<813>(c, "after", 2);
  ExpectFamily<813>(c, "again", 3);
}

// The nodes of the new child belong where they were created, as with an update of the whole.
inline void ChildSetParams(Case& c) {
  const Stream stream = MakeStream();
  const Graph before = MakeGraph(), after = MakeGraph(), graph = MakeGraph();
  AddUnder("before", before, Zoo<820>());
  AddUnder("after", after, Zoo<821>());
  const Node child = AddChild(graph, before, {AddUnder("own", graph, Zoo<822>())});
  const Exec exec = Instantiate(graph);
  c.Replay(exec, stream);
  CHECK(cudaGraphExecChildGraphNodeSetParams(exec, child, after));
  c.Replay(exec, stream, 2);
  c.Expect("before", Zoo<820>(), 1);
  c.Expect("after", Zoo<821>(), 2);
  c.Expect("own", Zoo<822>(), 3);
}

// Under a new range the node's kernel changes, then only its range does; a second instantiation knows nothing of it.
inline void KernelSetParams(Case& c) {
  const Stream stream = MakeStream();
  const Graph graph = MakeGraph();
  const Node node = AddUnder("before", graph, Zoo<830>());
  AddUnder("other", graph, Zoo<831>(), {node});
  const Exec exec = Instantiate(graph);
  c.Replay(exec, stream);
  const auto set = [&](const char* layer) {
    const Range range(layer);
    Arguments arguments(Zoo<832>());
    const cudaKernelNodeParams params = NodeParams(Zoo<832>(), arguments);
    CHECK(cudaGraphExecKernelNodeSetParams(exec, node, &params));
  };
  set("after");
  c.Replay(exec, stream, 2);
  set("again");
  c.Replay(exec, stream, 3);
  const Exec untouched = Instantiate(graph);
  c.Replay(untouched, stream);
  c.Expect("before", Zoo<830>(), 1 + 1);
  c.Expect("after", Zoo<832>(), 2);
  c.Expect("again", Zoo<832>(), 3);
  c.Expect("other", Zoo<831>(), 1 + 2 + 3 + 1);
}

// The same by the driver's call, and by the one for nodes of any type.
inline void KernelSetParamsDriver(Case& c) {
  const Stream stream = MakeStream();
  const Graph graph = MakeGraph();
  const Node node = AddUnder("before", graph, Zoo<840>());
  const Exec exec = Instantiate(graph);
  c.Replay(exec, stream);
  {
    const Range range("driver");
    Arguments arguments(Zoo<841>());
    CUDA_KERNEL_NODE_PARAMS params = {};
    params.func = DriverFunction(Zoo<841>());
    params.gridDimX = params.gridDimY = params.gridDimZ = 1;
    params.blockDimX = kThreads;
    params.blockDimY = params.blockDimZ = 1;
    params.kernelParams = arguments.data();
    CHECK(cuGraphExecKernelNodeSetParams(exec, node, &params));
  }
  c.Replay(exec, stream, 2);
  {
    const Range range("any_type");
    Arguments arguments(Zoo<842>());
    cudaGraphNodeParams params = {};
    params.type = cudaGraphNodeTypeKernel;
    params.kernel.func = const_cast<void*>(Zoo<842>().function);
    params.kernel.gridDim = dim3(1);
    params.kernel.blockDim = dim3(kThreads);
    params.kernel.kernelParams = arguments.data();
    CHECK(cudaGraphExecNodeSetParams(exec, node, &params));
  }
  c.Replay(exec, stream, 3);
  c.Expect("before", Zoo<840>(), 1);
  c.Expect("driver", Zoo<841>(), 2);
  c.Expect("any_type", Zoo<842>(), 3);
}

// ---- Parameters of a graph that is not instantiated yet ----

inline void SetTemplateParams(cudaGraphNode_t node, const Kernel& kernel) {
  Arguments arguments(kernel);
  const cudaKernelNodeParams params = NodeParams(kernel, arguments);
  CHECK(cudaGraphKernelNodeSetParams(node, &params));
}

// Under the range the node was created in: its layer is beyond doubt, its kernel is another one.
inline void TemplateSetParams(Case& c) {
  const Stream stream = MakeStream();
  const Graph graph = MakeGraph();
  {
    const Range range("layer");
    const Node node = Add(graph, Zoo<850>());
    SetTemplateParams(node, Zoo<851>());
  }
  const Exec exec = Instantiate(graph);
  c.Replay(exec, stream, 2);
  c.Expect("layer", Zoo<851>(), 2);
}

// Under another range, which is then the node's, as it is for a node of an executable graph.
inline void TemplateSetParamsElsewhere(Case& c) {
  const Stream stream = MakeStream();
  const Graph graph = MakeGraph();
  const Node node = AddUnder("before", graph, Zoo<860>());
  const Exec exec_before = Instantiate(graph);
  {
    const Range range("after");
    SetTemplateParams(node, Zoo<861>());
  }
  const Exec exec_after = Instantiate(graph);
  c.Replay(exec_before, stream, 2);
  c.Replay(exec_after, stream, 3);
  c.Expect("before", Zoo<860>(), 2);
  c.Expect("after", Zoo<861>(), 3);
}

// ---- Copies, memsets, and nodes switched off ----

inline cudaMemcpy3DParms CopyParams(char* to, char* from) {
  cudaMemcpy3DParms params = {};
  params.srcPtr = make_cudaPitchedPtr(from, kBytes, kBytes, 1);
  params.dstPtr = make_cudaPitchedPtr(to, kBytes, kBytes, 1);
  params.extent = make_cudaExtent(kBytes, 1, 1);
  params.kind = cudaMemcpyDeviceToDevice;
  return params;
}

inline cudaMemsetParams MemsetParams(char* to, unsigned value) {
  cudaMemsetParams params = {};
  params.dst = to;
  params.value = value;
  params.elementSize = 1;
  params.width = kBytes;
  params.height = 1;
  return params;
}

// The layer of a copy or memset follows the call that sets it anew, as a kernel's does.
inline void CopySetParams(Case& c) {
  const Stream stream = MakeStream();
  const Buffers buffers;
  const Graph graph = MakeGraph();
  Node memset_node = nullptr, copy_node = nullptr;
  cudaMemsetParams memset_params = MemsetParams(buffers.device_a, 1);
  cudaMemcpy3DParms copy_params = CopyParams(buffers.device_b, buffers.device_a);
  {
    const Range range("before");
    CHECK(cudaGraphAddMemsetNode(&memset_node, graph, nullptr, 0, &memset_params));
    CHECK(cudaGraphAddMemcpyNode(&copy_node, graph, &memset_node, 1, &copy_params));
  }
  const Exec exec = Instantiate(graph);
  c.Replay(exec, stream);
  memset_params = MemsetParams(buffers.device_b, 2);
  copy_params = CopyParams(buffers.device_a, buffers.device_b);
  {
    const Range range("after/memset");
    CHECK(cudaGraphExecMemsetNodeSetParams(exec, memset_node, &memset_params));
  }
  {
    const Range range("after/copy");
    CHECK(cudaGraphExecMemcpyNodeSetParams(exec, copy_node, &copy_params));
  }
  c.Replay(exec, stream, 2);
  c.ExpectMemset("before", 1);
  c.ExpectCopy("before", "DtoD", 1);
  c.ExpectMemset("after/memset", 2);
  c.ExpectCopy("after/copy", "DtoD", 2);
}

// A node switched off does not run; switched on again it is what it was.
inline void NodeSwitchedOff(Case& c) {
  const Stream stream = MakeStream();
  const Graph graph = MakeGraph();
  const Node first = AddUnder("first", graph, Zoo<870>());
  const Node second = AddUnder("second", graph, Zoo<871>(), {first});
  AddUnder("third", graph, Zoo<872>(), {second});
  const Exec exec = Instantiate(graph);
  c.Replay(exec, stream);
  CHECK(cudaGraphNodeSetEnabled(exec, second, 0));
  c.Replay(exec, stream, 2);
  CHECK(cudaGraphNodeSetEnabled(exec, second, 1));
  c.Replay(exec, stream);
  c.Expect("first", Zoo<870>(), 1 + 2 + 1);
  c.Expect("second", Zoo<871>(), 1 + 1);
  c.Expect("third", Zoo<872>(), 1 + 2 + 1);
}

#endif  // LAMINA_TESTS_PROGRAMS_GRAPH_ZOO_UPDATE_CUH_
