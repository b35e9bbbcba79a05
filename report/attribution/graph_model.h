// What is known of a process's CUDA graphs: where each node was created and which node of a template each node of an
// executable graph came from, so that a kernel of a replay finds its layer. Sources: inject/record.h, "graphs".
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <unordered_map>
#include <vector>

#include "report/flat_map.h"
#include "report/tree/layer_tree.h"

namespace lamina {

// A range that was open when a node was created: one call, shared by the nodes created in it.
struct CapturedCall {
  std::shared_ptr<const CapturedCall> parent;  // null: outermost
  uint32_t number = 0;  // counts the process's, from 1
  LayerName name;
  uint32_t trace = 0;  // LayerTree::name_id: what it adds to the trace of kernels (call_text() of a layer)
  bool is_op = false;
  bool is_native = false;  // a frame of the native call stack, no range
  bool in_range = false;   // it or a call outside of it is a layer by a range
  bool left_out = false;  // stands outside of all layers
  uint32_t depth = 0;  // layers outside of it
  uint64_t order = 0;
  // What follows from the calls around it.
  const CapturedCall* layer = nullptr;  // the innermost: itself, or one around it; null: none
  uint32_t ops_trace = 0;               // of the ops in that layer, as far as it
  bool in_op = false;                   // that is a range
};
using CapturedCallPtr = std::shared_ptr<const CapturedCall>;

struct GraphNode {
  CapturedCallPtr call;  // null: created in no range
  uint32_t kernel = 0;   // string id of the mangled name; 0: not known
  uint64_t order = 0;    // of creation
  uint64_t source = 0;   // node that this one was cloned from; 0: it is none's clone
  bool stale = false;    // an update changed it in a way that could not be followed
};

class GraphModel {
 public:
  void graph_created(uint32_t thread, uint32_t graph);
  void graph_cloned(uint32_t thread, uint32_t graph);  // by the user; comes when the nodes are there
  void node_created(uint32_t thread, uint64_t node, CapturedCallPtr call, uint32_t kernel, uint64_t order);
  void node_cloned(uint64_t node, uint64_t original);
  void exec_created(uint32_t thread, uint32_t exec);
  void node_updated(uint32_t exec, uint64_t node, uint64_t source);
  void exec_updated(uint32_t exec, uint32_t graph);
  void set_params(uint64_t node, uint32_t exec, CapturedCallPtr call, uint64_t order);
  void graph_destroyed(uint32_t graph);
  void exec_destroyed(uint32_t exec);

  // Events come in the order of their sequence; `sequence` is that of the event at hand, and counts from 0.
  void set_sequence(uint64_t sequence) { sequence_ = sequence; }

  // The node with the id of an activity record as it was when `sequence` events had happened; null when its creation
  // was not seen.
  const GraphNode* find(uint64_t node, uint64_t sequence) const;

 private:
  struct Graph {
    std::map<uint32_t, GraphNode> nodes;              // by number
    std::map<uint32_t, std::vector<uint32_t>> bodies;  // of a node: child graphs
    bool cloned_into = false;
    uint64_t destroyed = UINT64_MAX;  // when, in the order of destructions
  };
  // What a node was, from when on; the last is what it is. Records of replays come long after, so that updates must
  // not change what was before.
  struct Version {
    uint64_t since;
    GraphNode node;
  };
  struct ExecNode {
    std::vector<Version> versions;
    const GraphNode& now() const { return versions.back().node; }
  };
  struct Exec {
    ExecNode& node(uint32_t number);

    std::map<uint32_t, ExecNode> nodes;       // numbered through
    FlatMap<uint32_t, const ExecNode*> index;  // the same nodes
    std::map<uint32_t, uint64_t> updated;     // by the update that is under way: number to source
  };

  Graph* graph_of(uint64_t node);
  const GraphNode* template_node(uint64_t node);
  void add_flat(Exec& exec, uint32_t& next, const Graph& graph) const;
  void flatten_template(uint32_t graph, int depth, size_t limit, std::vector<const GraphNode*>& nodes) const;
  bool pairs_up(const Exec& exec, const std::vector<const GraphNode*>& nodes) const;
  void change(ExecNode& node, GraphNode now) const;
  void bury(bool is_exec, uint32_t id, size_t nodes);

  struct Grave {
    bool is_exec;
    uint32_t id;
    size_t nodes;
  };

  std::unordered_map<uint32_t, Graph> graphs_;
  std::unordered_map<uint32_t, Exec> execs_;
  // A replay asks for one node after the other.
  mutable const Exec* last_exec_ = nullptr;
  mutable uint32_t last_exec_id_ = 0;
  // By thread: the graphs created on it since its last instantiation.
  struct Recent {
    uint32_t graph;
    bool is_body;  // of a node that was created after it
  };
  std::unordered_map<uint32_t, std::vector<Recent>> recent_graphs_;
  // Records of replays come after the graph is gone: what is destroyed stays for a while.
  std::deque<Grave> graves_;
  size_t buried_nodes_ = 0;
  uint64_t destructions_ = 0;
  uint64_t sequence_ = 0;
};

}  // namespace lamina
