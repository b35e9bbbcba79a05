// The layer tree while it grows: attribution enters calls and adds activities, and finish() gives the LayerReport.
// Two trees share the names: the summary (calls with the same path of names are one node; always kept, for each phase, and
// if asked for what each step adds to its rows) and the model (each call and each kernel execution is a node; kept for the
// steps that will be shown in detail).
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "report/flat_map.h"
#include "report/tree/layer_report.h"
#include "report/tree/step_rows.h"

namespace lamina {

// When something first happened, in the order of its thread: a launch, and within a graph the node.
struct Order {
  uint64_t major = 0;
  uint64_t minor = 0;
  auto operator<=>(const Order&) const = default;
};

// A place in the tree. `model` is 0 in steps without a model tree, `step` in those of which nothing is kept.
struct Position {
  uint32_t summary = 0;
  uint32_t model = 0;
  uint32_t step = 0;
  bool operator==(const Position&) const = default;
};

// What a call is, by ids of LayerTree::name_id(). The summary knows names only, the model tree instances too.
struct LayerName {
  uint32_t name = 0;
  uint32_t path = 0;  // of the instance; 0: not known
  bool operator==(const LayerName&) const = default;
};

class LayerTree {
 public:
  static constexpr size_t kMaxCalls = size_t{64} << 20;  // Options::only_calls: further ones are their callers
  // Deeper ranges fold into the one at this depth, so that what walks a report may recurse and JSON readers can read it.
  static constexpr uint32_t kMaxDepth = 400;

  struct Options {
    // Whether the model tree of a phase's step is kept.
    std::function<bool(std::string_view phase, uint32_t step)> details = [](auto, auto) { return false; };
    bool first_model = true;      // that of the first step seen is in any case
    bool step_summaries = false;  // of each step a summary is
    bool gpu_time = false;        // idle time and GpuTime are asked for
    // Rows of the model tree are bounded: further calls of a program without phases go into one row.
    size_t max_model_nodes = size_t{4} << 20;
    bool merge_instances = true;  // `layers.0`, `layers.1`, … are one row of the summary
    // Instead of a model tree only the calls in it, without a limit that a long run reaches: see call().
    bool only_calls = false;
  };

  explicit LayerTree(Options options) : options_(std::move(options)) {}

  // The place outside of every layer in a step of a phase (number from 1); the same for the same arguments.
  Position step(std::string_view phase, uint32_t number);

  // A call begins at `parent`: a new model node, and one invocation of the summary node.
  Position enter(Position parent, LayerName call, Order order);
  void add_cpu_time(Position call, double us);
  // The row `(no module)` of a step, for what has no layer: the last. To be entered once a step.
  Position enter_no_module(Position root);

  // How many sequences a step runs. Steps of one number are one step of several processes: where these disagree, nothing
  // is known.
  void set_sequences(std::string_view phase, uint32_t step, uint64_t sequences);

  // A kernel, memcpy or memset of `us` microseconds at `parent`. Gives its row of the summary.
  uint32_t add_activity(Position parent, uint32_t name, uint32_t trace, double us, Order order);

  // The GPU had nothing to do for `us` microseconds until an activity of this row of the summary began; `row.model` is not used.
  void add_idle(Position row, double us);
  // When a device worked in the step with this root.
  void add_gpu_time(Position root, const GpuTime& time);
  bool wants_gpu_time() const { return options_.gpu_time; }

  // Kernels that a library has launched in the phase whose root this is in the summary.
  void add_library(uint32_t summary_root, uint32_t name, double us, uint64_t count);

  uint32_t name_id(std::string_view text);
  const std::string& name(uint32_t id) const { return names_[id]; }

  // Gives the summary's path of names, outermost first, and its phase. For `lamina dump`.
  std::vector<std::string_view> path(Position position) const;
  std::string_view phase(Position position) const;

  // With Options::only_calls: a call by Position::model. A step is a call without a name, and 0 its parent.
  struct Call {
    uint32_t parent = 0;
    LayerName name;
  };
  const Call& call(uint32_t model) const { return calls_[model]; }

  // A phase's name may be known late: `startup` or `all` of a process is decided by its first phase.
  void rename_phase(std::string_view from, std::string_view to);

  // Adds what the tree holds to the report; phases in which nothing happened are left out.
  void finish(LayerReport& report) const;

 private:
  class Finisher;

  // A row of the summary.
  struct Node {
    uint32_t parent = 0;
    uint32_t name = 0;
    uint32_t depth = 0;
    bool is_activity = false;
    Order order;
    RowSums sums;  // those of the subtree are made by finish()
  };
  // A row of the model tree.
  struct ModelRow {
    uint32_t parent = 0;
    uint32_t name = 0;
    uint32_t path = 0;   // of calls
    uint32_t trace = 0;  // of activities
    Order order;
    double cpu_us = 0;
    double cuda_us = 0;
  };
  struct Step {
    uint32_t number = 0;
    uint32_t model = 0;  // root; 0: none is kept
    StepRows rows;       // if step summaries or idle time are kept
    std::optional<GpuTime> gpu;
    std::optional<uint64_t> sequences;
    bool disagree = false;  // about the sequences
  };
  struct Phase {
    std::string name;
    uint32_t summary_root = 0;
    std::optional<GpuTime> gpu;
    std::map<std::string, SummaryNode> libraries;
    size_t step_count = 0;
    std::vector<bool> steps;         // by number: seen
    std::map<uint32_t, uint32_t> kept;  // by number: the step in kept_, of those that are
  };

  uint32_t new_node(uint32_t parent, uint32_t name, bool is_activity, Order order);
  uint32_t new_row(uint32_t parent, uint32_t name, Order order);
  uint32_t summary_child(uint32_t parent, uint32_t name, bool activity, Order order);
  uint32_t model_child(uint32_t parent, uint32_t name, Order order);
  uint32_t new_call(uint32_t parent, LayerName call);
  Phase& find_phase(std::string_view name);

  uint32_t summary_name(uint32_t name);
  RowSums* step_row(Position at);

  Options options_;
  std::vector<std::string> names_{""};
  std::vector<uint32_t> summary_names_;  // by name; 0: not asked for yet
  std::unordered_map<std::string, uint32_t> name_ids_{{"", 0}};
  std::vector<Node> summary_ = std::vector<Node>(1);
  std::vector<ModelRow> model_ = std::vector<ModelRow>(1);
  std::deque<Call> calls_ = std::deque<Call>(1);
  std::deque<Step> kept_ = std::deque<Step>(1);  // steps of which something is kept
  FlatMap<uint64_t, uint32_t> summary_children_{FlatMap<uint64_t, uint32_t>::Keys::kMixed};  // parent << 32 | name, the top bit for activities
  std::unordered_map<uint32_t, uint32_t> further_rows_;      // model parent: its row of what is past the limit
  std::map<std::pair<uint32_t, uint32_t>, Position> no_module_rows_;  // by root: summary and step
  std::vector<Phase> phases_;
};

}  // namespace lamina
