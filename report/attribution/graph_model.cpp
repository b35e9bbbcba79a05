#include "report/attribution/graph_model.h"

#include <algorithm>

namespace lamina {
namespace {

constexpr size_t kMaxBuriedNodes = 500'000;
constexpr size_t kMaxRecentGraphs = 10'000;
constexpr int kMaxNesting = 64;
constexpr size_t kMaxVersions = 64;  // of a node

uint32_t graph_id(uint64_t node) { return static_cast<uint32_t>(node >> 32); }
uint32_t number(uint64_t node) { return static_cast<uint32_t>(node); }

}  // namespace

GraphModel::Graph* GraphModel::graph_of(uint64_t node) {
  auto graph = graphs_.find(graph_id(node));
  return graph != graphs_.end() ? &graph->second : nullptr;
}

const GraphNode* GraphModel::template_node(uint64_t node) {
  Graph* graph = graph_of(node);
  if (!graph) return nullptr;
  auto found = graph->nodes.find(number(node));
  return found != graph->nodes.end() ? &found->second : nullptr;
}

GraphModel::ExecNode& GraphModel::Exec::node(uint32_t local) {
  ExecNode& node = nodes[local];
  index[local] = &node;
  return node;
}

void GraphModel::graph_created(uint32_t thread, uint32_t graph) {
  graphs_[graph] = {};
  auto& recent = recent_graphs_[thread];
  if (recent.size() >= kMaxRecentGraphs) recent.erase(recent.begin(), recent.begin() + kMaxRecentGraphs / 2);
  recent.push_back({graph, false});
}

// Such a clone is no child graph of a node created next.
void GraphModel::graph_cloned(uint32_t thread, uint32_t graph) {
  std::erase_if(recent_graphs_[thread], [&](const Recent& recent) { return recent.graph == graph; });
}

// The graphs cloned on this thread just before are the child graphs of the new node.
void GraphModel::node_created(uint32_t thread, uint64_t node, CapturedCallPtr call, uint32_t kernel, uint64_t order) {
  Graph& graph = graphs_[graph_id(node)];
  GraphNode& entry = graph.nodes[number(node)];
  // While cloning, numbers are given twice where the original has gaps: what was told as a clone is right.
  if (entry.source == 0) entry = {std::move(call), kernel, order, 0, false};
  auto& recent = recent_graphs_[thread];
  for (auto body = recent.rbegin(); body != recent.rend(); ++body) {
    if (body->is_body) continue;
    if (body->graph == graph_id(node) || !graphs_[body->graph].cloned_into) break;
    body->is_body = true;
    auto& bodies = graph.bodies[number(node)];
    bodies.insert(bodies.begin(), body->graph);
  }
}

void GraphModel::node_cloned(uint64_t node, uint64_t original) {
  const GraphNode* source = template_node(original);
  GraphNode copy = source ? *source : GraphNode{};
  Graph& graph = graphs_[graph_id(node)];
  graph.cloned_into = true;
  copy.source = original;
  graph.nodes[number(node)] = copy;
}

// Takes over the nodes of one cloned graph, from number `next` on. A node that the driver adds for itself has no
// original and is not among them; numbers of removed nodes stay free.
void GraphModel::add_flat(Exec& exec, uint32_t& next, const Graph& graph) const {
  uint32_t end = next;
  for (const auto& [local, node] : graph.nodes) {
    if (node.source == 0) continue;
    exec.node(next + local).versions.push_back({sequence_, node});
    end = std::max(end, next + local + 1);
  }
  next = end;
}

void GraphModel::exec_created(uint32_t thread, uint32_t exec_id) {
  auto& recent = recent_graphs_[thread];
  auto own = std::find_if(recent.begin(), recent.end(), [&](const Recent& r) { return r.graph == exec_id; });
  if (own == recent.end()) return;
  std::vector<const Graph*> clones;
  for (auto graph = own; graph != recent.end(); ++graph) {
    const Graph& clone = graphs_[graph->graph];
    if (clone.cloned_into) clones.push_back(&clone);
  }
  // The graph itself comes first; it was not destroyed, nor were bodies that stay, which keep their order.
  if (clones.size() > 1) {
    std::stable_sort(clones.begin() + 1, clones.end(), [](const Graph* a, const Graph* b) { return a->destroyed < b->destroyed; });
  }
  Exec& exec = execs_[exec_id] = {};
  uint32_t next = 0;
  for (const Graph* clone : clones) add_flat(exec, next, *clone);
  recent.clear();
}

static bool same_place(const CapturedCall* a, const CapturedCall* b) {
  for (; a && b && a != b; a = a->parent.get(), b = b->parent.get()) {
    if (a->name != b->name) return false;
  }
  return a == b;
}

// A program that sets the same parameters at every step makes no new versions. Past the limit the oldest go, and what
// ran under them is stale.
void GraphModel::change(ExecNode& node, GraphNode now) const {
  if (!node.versions.empty()) {
    const GraphNode& before = node.now();
    now.source = before.source;  // set_params names the node by the graph that was instantiated
    bool same = before.stale == now.stale && before.kernel == now.kernel && same_place(before.call.get(), now.call.get());
    if (same) return;
  }
  node.versions.push_back({sequence_, std::move(now)});
  if (node.versions.size() > kMaxVersions) {
    node.versions.erase(node.versions.begin());
    node.versions.front().node.stale = true;
    node.versions.front().since = 0;
  }
}

void GraphModel::node_updated(uint32_t exec_id, uint64_t node, uint64_t source) {
  auto exec = execs_.find(exec_id);
  if (exec == execs_.end()) return;
  exec->second.updated[number(node)] = source;
  const GraphNode* new_node = template_node(source);
  GraphNode now = new_node ? *new_node : GraphNode{};
  now.stale = !new_node;
  change(exec->second.node(number(node)), now);
}

// All nodes of a graph and of its child graphs, in the order in which an instantiation numbers them. No more than a few
// past `limit`: a damaged file may have a graph inside of itself.
void GraphModel::flatten_template(uint32_t graph_id, int depth, size_t limit, std::vector<const GraphNode*>& nodes) const {
  auto graph = graphs_.find(graph_id);
  if (graph == graphs_.end() || depth > kMaxNesting || nodes.size() > limit) return;
  for (const auto& [local, node] : graph->second.nodes) nodes.push_back(&node);
  for (const auto& [local, bodies] : graph->second.bodies) {
    for (uint32_t body : bodies) flatten_template(body, depth + 1, limit, nodes);
  }
}

// Whether node i of the executable graph is node i of the new one: as many nodes, the known names equal, and the pairs
// that CUPTI told are the same.
bool GraphModel::pairs_up(const Exec& exec, const std::vector<const GraphNode*>& nodes) const {
  if (exec.nodes.size() != nodes.size()) return false;
  size_t i = 0;
  for (const auto& [flat, own] : exec.nodes) {
    const GraphNode& other = *nodes[i++];
    auto told = exec.updated.find(flat);
    if (told != exec.updated.end()) {
      auto source = graphs_.find(graph_id(told->second));
      if (source == graphs_.end()) return false;
      auto node = source->second.nodes.find(number(told->second));
      if (node == source->second.nodes.end() || &node->second != &other) return false;
    } else if (own.now().kernel != 0 && other.kernel != 0 && own.now().kernel != other.kernel) {
      return false;
    }
  }
  return true;
}

void GraphModel::exec_updated(uint32_t exec_id, uint32_t graph) {
  auto found = execs_.find(exec_id);
  if (found == execs_.end()) return;
  Exec& exec = found->second;
  std::vector<const GraphNode*> nodes;
  flatten_template(graph, 0, exec.nodes.size(), nodes);
  bool paired = pairs_up(exec, nodes);
  size_t i = 0;
  for (auto& [flat, own] : exec.nodes) {
    const GraphNode* other = paired ? nodes[i++] : nullptr;
    if (exec.updated.contains(flat)) continue;
    GraphNode now = other ? *other : own.now();
    now.stale = !other;
    change(own, now);
  }
  exec.updated.clear();
}

void GraphModel::set_params(uint64_t node, uint32_t exec_id, CapturedCallPtr call, uint64_t order) {
  GraphNode now{std::move(call), 0, order, 0, false};
  if (exec_id == 0) {
    Graph* graph = graph_of(node);
    auto own = graph ? graph->nodes.find(number(node)) : decltype(graph->nodes.end()){};
    if (!graph || own == graph->nodes.end()) return;
    now.source = own->second.source;
    own->second = now;
    return;
  }
  auto exec = execs_.find(exec_id);
  if (exec == execs_.end()) return;
  for (auto& [flat, own] : exec->second.nodes) {
    // A child graph's new parameters come as updates of the nodes in it.
    if (own.now().source == node && !exec->second.updated.contains(flat)) change(own, now);
  }
  exec->second.updated.clear();
}

void GraphModel::graph_destroyed(uint32_t graph) {
  auto found = graphs_.find(graph);
  if (found == graphs_.end()) return;
  found->second.destroyed = destructions_++;
  bury(false, graph, found->second.nodes.size());
}

void GraphModel::exec_destroyed(uint32_t exec) {
  if (auto found = execs_.find(exec); found != execs_.end()) bury(true, exec, found->second.nodes.size());
}

void GraphModel::bury(bool is_exec, uint32_t id, size_t nodes) {
  graves_.push_back({is_exec, id, nodes + 1});
  buried_nodes_ += nodes + 1;
  while (buried_nodes_ > kMaxBuriedNodes) {
    const Grave& oldest = graves_.front();
    if (oldest.is_exec) {
      execs_.erase(oldest.id);
      last_exec_ = nullptr;
    } else {
      graphs_.erase(oldest.id);
    }
    buried_nodes_ -= oldest.nodes;
    graves_.pop_front();
  }
}

const GraphNode* GraphModel::find(uint64_t node, uint64_t sequence) const {
  if (!last_exec_ || last_exec_id_ != graph_id(node)) {
    auto exec = execs_.find(graph_id(node));
    if (exec == execs_.end()) return nullptr;
    last_exec_ = &exec->second;
    last_exec_id_ = graph_id(node);
  }
  const ExecNode* const* found = last_exec_->index.find(number(node));
  if (!found) return nullptr;
  const auto& versions = (*found)->versions;
  for (auto version = versions.rbegin(); version != versions.rend(); ++version) {
    if (version->since < sequence) return &version->node;
  }
  return &versions.front().node;
}

}  // namespace lamina
