// Graphs, cloning and launching. Which events come, in which order and with which numbers is as measured on an H200
// with driver 580 and CUPTI 13.0; there every node is told as a kernel node.
#include "graphs.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <mutex>

#include "sim.h"

namespace sim {
namespace {

constexpr auto kNodeUpdated = static_cast<CUpti_CallbackIdResource>(22);    // since CUPTI 13
constexpr auto kNodeSetParams = static_cast<CUpti_CallbackIdResource>(23);  // since CUPTI 13

// Kept until the process ends, where a leak checker finds it.
template <typename T>
T& keep(T* object) {
  static auto& mutex = *new std::mutex;
  static auto& objects = *new std::vector<T*>;
  std::lock_guard lock(mutex);
  objects.push_back(object);
  return *object;
}

void tell(CUpti_CallbackIdResource id, CUpti_GraphData data) { resource_callback(id, &data); }

void tell_graph(CUpti_CallbackIdResource id, const Graph& graph, const Graph* original = nullptr) {
  CUpti_GraphData data{};
  data.graph = handle_of(&graph);
  data.originalGraph = handle_of(original);
  tell(id, data);
}

void tell_node(CUpti_CallbackIdResource id, const Node& node, const Node* original = nullptr,
               const Exec* exec = nullptr) {
  CUpti_GraphData data{};
  data.graph = handle_of(node.graph);
  data.node = handle_of(&node);
  data.originalNode = handle_of(original);
  data.originalGraph = original ? handle_of(original->graph) : nullptr;
  data.graphExec = handle_of(exec);
  data.nodeType = CU_GRAPH_NODE_TYPE_KERNEL;
  tell(id, data);
}

Node& append(Graph& graph, Node model) {
  Node& node = *graph.nodes.emplace_back(std::make_unique<Node>(std::move(model)));
  node.graph = &graph;
  node.number = graph.next_number++;
  tell_node(CUPTI_CBID_RESOURCE_GRAPHNODE_CREATED, node);
  return node;
}

Graph& clone_tree(const Graph& original);

// What the node holds is cloned before the node itself. Its number is that of the original only at the end.
void clone_node(const Node& original, Graph& copy) {
  Node model;
  model.original = &original;
  model.type = original.type;
  model.work = original.work;
  model.function = original.function;
  model.runs = original.runs;
  for (const Graph* body : original.bodies) model.bodies.push_back(&clone_tree(*body));
  Node& node = append(copy, std::move(model));
  uint32_t place = copy.next_number;
  node.number = original.number;
  tell_node(CUPTI_CBID_RESOURCE_GRAPHNODE_CLONED, node, &original);
  copy.next_number = place;
}

Graph& clone_tree(const Graph& original) {
  Graph& copy = create_graph();
  for (const auto& node : original.nodes) clone_node(*node, copy);
  copy.next_number = original.next_number;
  return copy;
}

// The driver's own graphs beside a tree, with a node for each that holds another graph.
Graph& add_shadow(const Graph& graph, std::vector<Graph*>& shadows) {
  Graph& shadow = create_graph();
  shadows.push_back(&shadow);
  for (const auto& node : graph.nodes) {
    for (const Graph* body : node->bodies) add_shadow(*body, shadows);
    if (node->bodies.empty()) continue;
    shadow.next_number = node->number;
    append(shadow, {});
  }
  return shadow;
}

// The order in which bodies are numbered: those of one node first, then what is in them, from the last on.
void add_bodies(const Graph& graph, std::vector<Graph*>& order) {
  for (const auto& node : graph.nodes) {
    order.insert(order.end(), node->bodies.begin(), node->bodies.end());
    for (size_t i = node->bodies.size(); i-- > 0;) add_bodies(*node->bodies[i], order);
  }
}

// All nodes get the numbers that kernel records name; the driver's own ones come behind.
void number_through(Exec& exec) {
  std::vector<Graph*> order{exec.graph};
  add_bodies(*exec.graph, order);
  uint32_t first = 0;
  for (Graph* graph : order) {
    for (auto& node : graph->nodes) {
      node->number += first;
      node->graph = exec.graph;
      exec.nodes.push_back(node.get());
    }
    first += graph->next_number;
    if (graph != exec.graph) tell_graph(CUPTI_CBID_RESOURCE_GRAPH_DESTROY_STARTING, *graph);
  }
  Graph& own = keep(new Graph{exec.graph->id, first, {}});
  size_t count = order.size() > 1 ? order.size() - 1 : first > 2;
  for (size_t i = 0; i < count; ++i) append(own, {});
}

bool same_shape(const Graph& a, const Graph& b) {
  if (a.nodes.size() != b.nodes.size()) return false;
  for (size_t i = 0; i < a.nodes.size(); ++i) {
    const Node &x = *a.nodes[i], &y = *b.nodes[i];
    if (x.type != y.type || x.bodies.size() != y.bodies.size()) return false;
    for (size_t k = 0; k < x.bodies.size(); ++k) {
      if (!same_shape(*x.bodies[k], *y.bodies[k])) return false;
    }
  }
  return true;
}

bool same_work(const Work& a, const Work& b) {
  return a.name == b.name && a.bytes == b.bytes && a.value == b.value && !memcmp(a.grid, b.grid, sizeof(a.grid)) &&
         !memcmp(a.block, b.block, sizeof(a.block));
}

// Nodes that stay as they are have no event, and the last node comes first.
void update_nodes(const Exec& exec, const Graph& graph, const Graph& source) {
  for (size_t i = graph.nodes.size(); i-- > 0;) {
    Node& node = *graph.nodes[i];
    const Node& update = *source.nodes[i];
    for (size_t k = 0; k < node.bodies.size(); ++k) update_nodes(exec, *node.bodies[k], *update.bodies[k]);
    bool same = same_work(node.work, update.work);
    node.work = update.work;
    node.runs = update.runs;
    if (node.type != CU_GRAPH_NODE_TYPE_KERNEL || same) continue;
    tell_node(kNodeUpdated, update, &node, &exec);
    tell_node(kNodeSetParams, node, node.original, &exec);
  }
}

// Kernels in bodies of conditional nodes have lost their correlation id.
void run(const Exec& exec, const Graph& graph, Stream& stream, uint32_t correlation) {
  for (const auto& node : graph.nodes) {
    uint32_t inner = node->type == CU_GRAPH_NODE_TYPE_GRAPH ? correlation : 0;
    for (size_t i = 0; i < node->bodies.size(); ++i) {
      for (unsigned n = 0; n < node->runs[i]; ++n) run(exec, *node->bodies[i], stream, inner);
    }
    if (!node->bodies.empty() || node->type == CU_GRAPH_NODE_TYPE_EMPTY) continue;
    execute(stream, node->work, {correlation, node->id(), exec.graph->id});
  }
}

}  // namespace

Graph& create_graph() {
  static std::atomic<uint32_t> last{0};
  Graph& graph = keep(new Graph{++last, 0, {}});
  tell_graph(CUPTI_CBID_RESOURCE_GRAPH_CREATED, graph);
  return graph;
}

Node& add_node(Graph& graph, CUgraphNodeType type, const Work& work, CUfunction function) {
  Node model;
  model.type = type;
  model.work = work;
  model.function = function;
  return append(graph, std::move(model));
}

Node& add_child(Graph& graph, const Graph& child) {
  Node model;
  model.type = CU_GRAPH_NODE_TYPE_GRAPH;
  model.runs = {1};
  model.bodies = {&clone_tree(child)};
  return append(graph, std::move(model));
}

// Its number stays free.
void remove_node(Node& node) {
  auto& nodes = node.graph->nodes;
  auto place = std::find_if(nodes.begin(), nodes.end(), [&](const auto& other) { return other.get() == &node; });
  keep(place->release());
  nodes.erase(place);
}

Graph& clone_graph(const Graph& original) {
  Graph& copy = clone_tree(original);
  tell_graph(CUPTI_CBID_RESOURCE_GRAPH_CLONED, copy, &original);
  return copy;
}

void destroy_graph(const Graph& graph) {
  tell_graph(CUPTI_CBID_RESOURCE_GRAPH_DESTROY_STARTING, graph);
  for (const auto& node : graph.nodes) {
    for (const Graph* body : node->bodies) destroy_graph(*body);
  }
}

Exec& instantiate(const Graph& graph) {
  Exec& exec = keep(new Exec);
  exec.graph = &clone_tree(graph);
  add_shadow(*exec.graph, exec.shadows);
  number_through(exec);
  CUpti_GraphData data{};
  data.graph = handle_of(&graph);
  data.graphExec = handle_of(&exec);
  tell(CUPTI_CBID_RESOURCE_GRAPHEXEC_CREATED, data);
  return exec;
}

void destroy_exec(const Exec& exec) {
  CUpti_GraphData data{};
  data.graphExec = handle_of(&exec);
  tell(CUPTI_CBID_RESOURCE_GRAPHEXEC_DESTROY_STARTING, data);
  tell_graph(CUPTI_CBID_RESOURCE_GRAPH_DESTROY_STARTING, *exec.graph);
  for (const Graph* shadow : exec.shadows) tell_graph(CUPTI_CBID_RESOURCE_GRAPH_DESTROY_STARTING, *shadow);
}

bool update(Exec& exec, const Graph& graph) {
  if (!same_shape(*exec.graph, graph)) return false;
  update_nodes(exec, *exec.graph, graph);
  return true;
}

bool set_params(Exec& exec, const Node& node, const Work& work) {
  for (Node* own : exec.nodes) {
    if (own->original != &node) continue;
    own->work = work;
    tell_node(kNodeSetParams, *own, &node, &exec);
    return true;
  }
  return false;
}

void launch(const Exec& exec, Stream& stream, uint32_t correlation) { run(exec, *exec.graph, stream, correlation); }

}  // namespace sim

extern "C" CUgraphNode sim_add_conditional(CUgraph handle, unsigned bodies, const unsigned* runs, CUgraph* bodies_out) {
  sim::Node model;
  model.type = CU_GRAPH_NODE_TYPE_CONDITIONAL;
  model.runs.assign(runs, runs + bodies);
  for (unsigned i = 0; i < bodies; ++i) {
    model.bodies.push_back(&sim::create_graph());
    bodies_out[i] = sim::handle_of(model.bodies.back());
  }
  return sim::handle_of(&sim::append(sim::graph_of(handle), std::move(model)));
}
