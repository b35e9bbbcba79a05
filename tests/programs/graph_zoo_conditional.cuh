// Cases of graph_zoo with conditional nodes, and with bodies and child graphs nested in each other.
#ifndef LAMINA_TESTS_PROGRAMS_GRAPH_ZOO_CONDITIONAL_CUH_
#define LAMINA_TESTS_PROGRAMS_GRAPH_ZOO_CONDITIONAL_CUH_

#include "graph_zoo_base.cuh"
#include "graph_zoo_eager.cuh"

// ---- Conditional nodes ----

inline void ConditionalIf(Case& c) {
  const Stream stream = MakeStream();
  const Graph graph = MakeGraph();
  const auto condition = MakeCondition(graph, 0);
  const Kernel decide = Cycle<500>(condition, 2);  // 0, 1, 0, 1
  const Node decided = AddUnder("decide", graph, decide);
  const Conditional branch = AddConditional(graph, cudaGraphCondTypeIf, condition, 1, {decided});
  AddChainUnder("then", branch.bodies[0], Zoos<501, 502>());
  AddUnder("after", graph, Zoo<503>(), {branch.node});
  const Exec exec = Instantiate(graph);
  c.Replay(exec, stream, 4);
  c.Expect("decide", decide, 4);
  c.Expect("then", Zoos<501, 502>(), 2);
  c.Expect("after", Zoo<503>(), 4);
}

inline void ConditionalIfElse(Case& c) {
  const Stream stream = MakeStream();
  const Graph graph = MakeGraph();
  const auto condition = MakeCondition(graph, 0);
  const Kernel decide = Cycle<510>(condition, 2);  // 0, 1, 0
  const Node decided = AddUnder("decide", graph, decide);
  const Conditional branch = AddConditional(graph, cudaGraphCondTypeIf, condition, 2, {decided});
  AddUnder("else", branch.bodies[1], Zoo<511>());
  AddChainUnder("then", branch.bodies[0], Zoos<512, 513>());
  const Exec exec = Instantiate(graph);
  c.Replay(exec, stream, 3);
  c.Expect("decide", decide, 3);
  c.Expect("then", Zoos<512, 513>(), 1);
  c.Expect("else", Zoo<511>(), 2);
}

inline void ConditionalWhile(Case& c) {
  const Stream stream = MakeStream();
  const Graph graph = MakeGraph();
  const auto condition = MakeCondition(graph, 1);  // true at each launch
  const Kernel step = Repeat<521>(condition, 3);
  const Conditional loop = AddConditional(graph, cudaGraphCondTypeWhile, condition, 1);
  const Node work = AddUnder("loop/work", loop.bodies[0], Zoo<520>());
  AddUnder("loop/step", loop.bodies[0], step, {work});
  const Exec exec = Instantiate(graph);
  c.Replay(exec, stream, 2);
  c.Expect("loop/work", Zoo<520>(), 2 * 3);
  c.Expect("loop/step", step, 2 * 3);
}

// Bodies of one, two and three kernels, not made in their order.
inline void ConditionalSwitch(Case& c) {
  const Stream stream = MakeStream();
  const Graph graph = MakeGraph();
  const auto condition = MakeCondition(graph, 0);
  const Kernel decide = Cycle<530>(condition, 3);  // 0, 1, 2, 0
  const Node decided = AddUnder("decide", graph, decide);
  const Conditional choice = AddConditional(graph, cudaGraphCondTypeSwitch, condition, 3, {decided});
  AddChainUnder("two", choice.bodies[2], Zoos<534, 535, 536>());
  AddChainUnder("zero", choice.bodies[0], Zoos<531>());
  AddChainUnder("one", choice.bodies[1], Zoos<532, 533>());
  const Exec exec = Instantiate(graph);
  c.Replay(exec, stream, 4);
  c.Expect("decide", decide, 4);
  c.Expect("zero", Zoo<531>(), 2);
  c.Expect("one", Zoos<532, 533>(), 1);
  c.Expect("two", Zoos<534, 535, 536>(), 1);
}

// The graph itself is captured, the conditional node is put into the capture, its body is captured on another stream.
inline void ConditionalCaptured(Case& c) {
  const Stream stream = MakeStream(), side = MakeStream();
  Kernel step;
  const Graph graph = Capture(stream, [&] {
    LaunchUnder("before", Zoo<540>(), stream);
    cudaStreamCaptureStatus status;
    cudaGraph_t capturing = nullptr;
    const Node* last = nullptr;
    size_t count = 0;
    CHECK(cudaStreamGetCaptureInfo(stream, &status, nullptr, &capturing, &last, nullptr, &count));
    const auto condition = MakeCondition(capturing, 1);
    step = Repeat<543>(condition, 3);
    const Nodes after(last, last + count);
    Conditional loop = AddConditional(capturing, cudaGraphCondTypeWhile, condition, 1, after);
    CHECK(cudaStreamUpdateCaptureDependencies(stream, &loop.node, nullptr, 1, cudaStreamSetCaptureDependencies));
    CaptureInto(loop.bodies[0], side, [&] {
      const Range range("loop");
      LaunchUnder("attention", Zoo<541>(), side);
      LaunchUnder("mlp", Zoo<542>(), side);
      Launch(step, side);
    });
    LaunchUnder("after", Zoo<544>(), stream);
  });
  const Exec exec = Instantiate(graph);
  c.Replay(exec, stream, 2);
  c.Expect("before", Zoo<540>(), 2);
  c.Expect("loop/attention", Zoo<541>(), 2 * 3);
  c.Expect("loop/mlp", Zoo<542>(), 2 * 3);
  c.Expect("loop", step, 2 * 3);
  c.Expect("after", Zoo<544>(), 2);
}

inline void ConditionalCopies(Case& c) {
  const Stream stream = MakeStream();
  const Buffers buffers;
  const Graph graph = MakeGraph();
  const Conditional branch = AddConditional(graph, cudaGraphCondTypeIf, MakeCondition(graph, 1), 1);
  CaptureInto(branch.bodies[0], stream, [&] {
    {
      const Range range("memset");
      CHECK(cudaMemsetAsync(buffers.device_a, 's', kBytes, stream));
    }
    LaunchUnder("kernel", Zoo<550>(), stream);
    const Range range("copy");
    CHECK(cudaMemcpyAsync(buffers.device_b, buffers.device_a, kBytes, cudaMemcpyDeviceToDevice, stream));
  });
  const Exec exec = Instantiate(graph);
  c.Replay(exec, stream, 2);
  // Inside of a body the driver (580) does both by kernels of its own, and that is what runs.
  c.ExpectDriverKernel("memset", "memset32", 2);
  c.Expect("kernel", Zoo<550>(), 2);
  c.ExpectDriverKernel("copy", "memcpy32_post", 2);
}

// Launches of two phases follow each other without the host waiting, on one stream and beside a second one: the kernels
// of the body say nothing of their launch, only their place in the stream does.
inline void ConditionalPhases(Case& c) {
  const Stream stream_a = MakeStream(), stream_b = MakeStream();
  const Graph graph_a = MakeGraph(), graph_b = MakeGraph();
  const auto condition_a = MakeCondition(graph_a, 1), condition_b = MakeCondition(graph_b, 1);
  const Kernel step_a = Repeat<560>(condition_a, 3), step_b = Repeat<561>(condition_b, 2);
  const auto build = [](cudaGraph_t graph, auto condition, const Kernel& step, const std::string& layer) {
    const Range range(layer);
    const Conditional loop = AddConditional(graph, cudaGraphCondTypeWhile, condition, 1, {Add(graph, Zoo<562>())});
    AddChain(loop.bodies[0], {Zoo<563>(), step});
    Add(graph, Zoo<564>(), {loop.node});
  };
  build(graph_a, condition_a, step_a, "a");
  build(graph_b, condition_b, step_b, "b");
  const Exec exec_a = Instantiate(graph_a), exec_b = Instantiate(graph_b);
  c.LaunchGraph(exec_a, stream_a, "prefill");
  for (int i = 0; i < 3; ++i) {
    c.LaunchGraph(exec_a, stream_a, "decode");
    c.LaunchGraph(exec_b, stream_b, "decode");
  }
  CHECK(cudaDeviceSynchronize());
  c.Expect("a", Zoos<562, 564>(), 1, "prefill");
  c.Expect("a", {Zoo<563>(), step_a}, 1 * 3, "prefill");
  c.Expect("a", Zoos<562, 564>(), 3, "decode");
  c.Expect("a", {Zoo<563>(), step_a}, 3 * 3, "decode");
  c.Expect("b", Zoos<562, 564>(), 3, "decode");
  c.Expect("b", {Zoo<563>(), step_b}, 2 * 3, "decode");
}

// ---- Nesting: in which order does the driver number the nodes of nested bodies? ----

// A graph inside another one, and the node that runs it.
struct Body {
  Node node;
  cudaGraph_t graph;
};

using AddBody = Body (*)(cudaGraph_t parent, const Nodes& after);

inline Body AddChildBody(cudaGraph_t parent, const Nodes& after) {
  const Graph empty = MakeGraph();
  Body body = {AddChild(parent, empty, after), nullptr};
  CHECK(cudaGraphChildGraphNodeGetGraph(body.node, &body.graph));  // filled in place later
  return body;
}

inline Body AddIfBody(cudaGraph_t parent, const Nodes& after) {
  const Conditional branch = AddConditional(parent, cudaGraphCondTypeIf, MakeCondition(parent, 1), 1, after);
  return {branch.node, branch.bodies[0]};
}

// The kernels of each body's own. No two bodies are of one size, so that each way of numbering puts different kernels
// at a number.
const std::vector<Kernel> kOuter = Zoos<600, 601>(), kA = Zoos<610, 611, 612>(), kA1 = Zoos<620, 621, 622, 623>(),
                          kA1x = Zoos<630>(), kA2 = Zoos<640, 641, 642, 643, 644>(),
                          kB = Zoos<650, 651, 652, 653, 654, 655>(), kB1 = Zoos<660, 661, 662, 663, 664, 665, 666>();

inline void ExpectNest(Case& c, long count) {
  c.Expect("outer", kOuter, count);
  c.Expect("A", kA, count);
  c.Expect("A/A1", kA1, count);
  c.Expect("A/A1/A1x", kA1x, count);
  c.Expect("A/A2", kA2, count);
  c.Expect("B", kB, count);
  c.Expect("B/B1", kB1, count);
}

// Bodies A (with A1, which holds A1x, and A2) and B (with B1), made in the order A, B, B1, A1, A2, A1x and filled from
// the inside out. Breadth first it would be A, B, A1, A2, B1, A1x; depth first A, A1, A1x, A2, B, B1. With b_first the
// node of B is made before that of A, though A runs first; else the two run side by side.
inline void Nest(Case& c, AddBody add_a, AddBody add_b, AddBody add_in_b, bool b_first) {
  const Stream stream = MakeStream();
  const Graph graph = MakeGraph();
  const Node start = AddChainUnder("outer", graph, kOuter);
  Body a = {}, b = {};
  if (b_first) b = add_b(graph, {});
  a = add_a(graph, {start});
  if (b_first) CHECK(cudaGraphAddDependencies(graph, &a.node, &b.node, nullptr, 1));
  if (!b_first) b = add_b(graph, {start});

  const Body b1 = add_in_b(b.graph, {AddChainUnder("B", b.graph, kB)});
  const Body a1 = add_a(a.graph, {AddChainUnder("A", a.graph, kA)});
  const Body a2 = add_a(a.graph, {a1.node});
  const Body a1x = add_a(a1.graph, {});
  AddChainUnder("A/A1/A1x", a1x.graph, kA1x);
  AddChainUnder("B/B1", b1.graph, kB1);
  AddChainUnder("A/A2", a2.graph, kA2);
  AddChainUnder("A/A1", a1.graph, kA1);  // beside A1x

  const Exec exec = Instantiate(graph);
  c.Replay(exec, stream, 2);
  ExpectNest(c, 2);
}

inline void NestChildren(Case& c) { Nest(c, AddChildBody, AddChildBody, AddChildBody, false); }
inline void NestChildrenBFirst(Case& c) { Nest(c, AddChildBody, AddChildBody, AddChildBody, true); }
inline void NestIfs(Case& c) { Nest(c, AddIfBody, AddIfBody, AddIfBody, false); }
inline void NestIfsBFirst(Case& c) { Nest(c, AddIfBody, AddIfBody, AddIfBody, true); }
// Child graphs may stand in conditional bodies, not the other way round.
inline void NestChildBesideIf(Case& c) { Nest(c, AddChildBody, AddIfBody, AddIfBody, false); }
inline void NestChildInIf(Case& c) { Nest(c, AddChildBody, AddIfBody, AddChildBody, true); }
inline void NestIfBesideChild(Case& c) { Nest(c, AddIfBody, AddChildBody, AddChildBody, false); }

// The same from the innermost outwards, as programs build child graphs: each adding copies all that is inside.
inline void NestChildrenBottomUp(Case& c) {
  const Stream stream = MakeStream();
  const Graph graph = MakeGraph(), a = MakeGraph(), a1 = MakeGraph(), a1x = MakeGraph(), a2 = MakeGraph(),
              b = MakeGraph(), b1 = MakeGraph();
  AddChainUnder("B/B1", b1, kB1);
  AddChainUnder("A/A2", a2, kA2);
  AddChainUnder("A/A1/A1x", a1x, kA1x);
  AddChild(b, b1, {AddChainUnder("B", b, kB)});
  AddChild(a1, a1x, {AddChainUnder("A/A1", a1, kA1)});
  const Node last_of_a = AddChainUnder("A", a, kA);
  AddChild(a, a2, {AddChild(a, a1, {last_of_a})});
  const Node start = AddChainUnder("outer", graph, kOuter);
  AddChild(graph, b, {AddChild(graph, a, {start})});
  const Exec exec = Instantiate(graph);
  c.Replay(exec, stream, 2);
  ExpectNest(c, 2);
}

// Several bodies at one node, with something nested in the first and the last of them.
inline void NestSwitch(Case& c) {
  const Stream stream = MakeStream();
  const Graph graph = MakeGraph();
  const auto condition = MakeCondition(graph, 0);
  const Kernel decide = Cycle<670>(condition, 3);
  const Node decided = AddUnder("decide", graph, decide);
  const Conditional choice = AddConditional(graph, cudaGraphCondTypeSwitch, condition, 3, {decided});
  const Body in_two = AddIfBody(choice.bodies[2], {AddChainUnder("two", choice.bodies[2], Zoos<671>())});
  const Body in_zero = AddIfBody(choice.bodies[0], {AddChainUnder("zero", choice.bodies[0], Zoos<672, 673>())});
  AddChainUnder("one", choice.bodies[1], Zoos<674, 675, 676>());
  AddChainUnder("zero/inner", in_zero.graph, Zoos<677, 678>());
  AddChainUnder("two/inner", in_two.graph, Zoos<679, 680, 681>());
  const Exec exec = Instantiate(graph);
  c.Replay(exec, stream, 3);
  c.Expect("decide", decide, 3);
  c.Expect("zero", Zoos<672, 673>(), 1);
  c.Expect("zero/inner", Zoos<677, 678>(), 1);
  c.Expect("one", Zoos<674, 675, 676>(), 1);
  c.Expect("two", Zoos<671>(), 1);
  c.Expect("two/inner", Zoos<679, 680, 681>(), 1);
}

// A loop in a loop: the outer body sets the inner condition anew, as the initial value holds for a launch only.
inline void NestWhile(Case& c) {
  const Stream stream = MakeStream();
  const Graph graph = MakeGraph();
  const auto outer_condition = MakeCondition(graph, 1);
  const Conditional outer = AddConditional(graph, cudaGraphCondTypeWhile, outer_condition, 1);
  const auto inner_condition = MakeCondition(outer.bodies[0], 1);
  const Kernel reset = Assign<690>(inner_condition, 1);
  const Kernel inner_step = Repeat<691>(inner_condition, 3), outer_step = Repeat<692>(outer_condition, 2);
  Conditional inner;
  {
    const Range range("outer");
    inner = AddConditional(outer.bodies[0], cudaGraphCondTypeWhile, inner_condition, 1, {Add(outer.bodies[0], reset)});
    Add(outer.bodies[0], outer_step, {inner.node});
  }
  AddChainUnder("outer/inner", inner.bodies[0], {Zoo<693>(), inner_step});
  const Exec exec = Instantiate(graph);
  c.Replay(exec, stream, 2);
  c.Expect("outer", {reset, outer_step}, 2 * 2);
  c.Expect("outer/inner", {Zoo<693>(), inner_step}, 2 * 2 * 3);
}

#endif  // LAMINA_TESTS_PROGRAMS_GRAPH_ZOO_CONDITIONAL_CUH_
