// Graphs, executable graphs and their nodes, with ids and events as CUPTI tells them.
#pragma once

#include <cuda.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "device.h"

namespace sim {

struct Node {
  Graph* graph = nullptr;
  uint32_t number = 0;             // in its graph; in an executable graph numbered through, body after body
  const Node* original = nullptr;  // that it was cloned from
  CUgraphNodeType type = CU_GRAPH_NODE_TYPE_KERNEL;
  Work work;
  CUfunction function = nullptr;
  std::vector<Graph*> bodies;  // one for a child graph, several for a conditional node
  std::vector<unsigned> runs;  // of each body in a launch

  uint64_t id() const;
};

// Never freed: handles of destroyed graphs stay good, as records and originals may refer to them.
struct Graph {
  uint32_t id;
  uint32_t next_number = 0;
  std::vector<std::unique_ptr<Node>> nodes;
};

struct Exec {
  Graph* graph = nullptr;
  std::vector<Node*> nodes;     // of all levels, by number
  std::vector<Graph*> shadows;  // graphs that the driver makes for itself
};

inline uint64_t Node::id() const { return static_cast<uint64_t>(graph->id) << 32 | number; }

inline Node& node_of(CUgraphNode handle) { return *reinterpret_cast<Node*>(handle); }
inline Graph& graph_of(CUgraph handle) { return *reinterpret_cast<Graph*>(handle); }
inline Exec& exec_of(CUgraphExec handle) { return *reinterpret_cast<Exec*>(handle); }
inline CUgraphNode handle_of(const Node* node) { return reinterpret_cast<CUgraphNode>(const_cast<Node*>(node)); }
inline CUgraph handle_of(const Graph* graph) { return reinterpret_cast<CUgraph>(const_cast<Graph*>(graph)); }
inline CUgraphExec handle_of(const Exec* exec) { return reinterpret_cast<CUgraphExec>(const_cast<Exec*>(exec)); }

Graph& create_graph();
Node& add_node(Graph& graph, CUgraphNodeType type, const Work& work, CUfunction function = nullptr);
// A node that holds a copy of the graph.
Node& add_child(Graph& graph, const Graph& child);
void remove_node(Node& node);
Graph& clone_graph(const Graph& original);
void destroy_graph(const Graph& graph);

Exec& instantiate(const Graph& graph);
void destroy_exec(const Exec& exec);
// False when the graphs differ in more than the nodes' parameters.
bool update(Exec& exec, const Graph& graph);
// `node` is of the graph that was instantiated. Its parameters in the graph itself change without an event.
bool set_params(Exec& exec, const Node& node, const Work& work);
void launch(const Exec& exec, Stream& stream, uint32_t correlation);

}  // namespace sim
