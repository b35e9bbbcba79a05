#include "report/tree/layer_tree.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "report/tree/summarize.h"

namespace lamina {
namespace {

constexpr std::string_view kNoModule = "(no module)";
constexpr std::string_view kFurther = "(further calls)";
constexpr Order kLast{std::numeric_limits<uint64_t>::max(), 0};
constexpr uint64_t kActivityBit = uint64_t{1} << 63;

}  // namespace

uint32_t LayerTree::name_id(std::string_view text) {
  auto [found, added] = name_ids_.try_emplace(std::string(text), static_cast<uint32_t>(names_.size()));
  if (added) names_.emplace_back(text);
  return found->second;
}

uint32_t LayerTree::new_node(std::vector<Node>& nodes, uint32_t parent, uint32_t name, Order order) {
  Node& node = nodes.emplace_back();
  node.parent = parent;
  node.name = name;
  node.order = order;
  node.depth = parent != 0 ? nodes[parent].depth + 1 : 0;
  return static_cast<uint32_t>(nodes.size() - 1);
}

LayerTree::Phase& LayerTree::find_phase(std::string_view name) {
  auto found = std::find_if(phases_.begin(), phases_.end(), [&](const Phase& phase) { return phase.name == name; });
  if (found != phases_.end()) return *found;
  Phase& phase = phases_.emplace_back();
  phase.name = name;
  phase.summary_root = new_node(summary_, 0, 0, {});
  return phase;
}

Position LayerTree::step(std::string_view name, uint32_t number) {
  Phase& phase = find_phase(name);
  if (number >= phase.steps.size()) phase.steps.resize(number + 1);
  if (!phase.steps[number]) {
    phase.steps[number] = true;
    bool detailed = phase.step_count++ == 0 || options_.details(name, number);
    if (detailed) phase.detailed[number].root = {phase.summary_root, model_root()};
  }
  auto known = phase.detailed.find(number);
  return known != phase.detailed.end() ? known->second.root : Position{phase.summary_root, 0};
}

void LayerTree::set_sequences(std::string_view name, uint32_t number, uint64_t sequences) {
  Phase& phase = find_phase(name);
  auto step = phase.detailed.find(number);
  if (step == phase.detailed.end()) return;
  auto& known = step->second.sequences;
  step->second.disagree |= known && *known != sequences;
  known = sequences;
}

uint32_t LayerTree::summary_child(uint32_t parent, uint32_t name, bool activity, Order order) {
  uint64_t key = static_cast<uint64_t>(parent) << 32 | name | (activity ? kActivityBit : 0);
  auto [found, added] = summary_children_.try_emplace(key, 0);
  if (added) found->second = new_node(summary_, parent, name, order);
  Node& node = summary_[found->second];
  node.order = std::min(node.order, order);
  return found->second;
}

uint32_t LayerTree::model_child(uint32_t parent, uint32_t name, Order order) {
  if (model_.size() < kMaxModelNodes) return new_node(model_, parent, name, order);
  auto [row, added] = further_rows_.try_emplace(parent, 0);
  if (added) row->second = new_node(model_, parent, name_id(kFurther), kLast);
  return row->second;
}

uint32_t LayerTree::model_root() { return options_.only_calls ? new_call(0, {}) : new_node(model_, 0, 0, {}); }

uint32_t LayerTree::new_call(uint32_t parent, LayerName call) {
  if (calls_.size() >= kMaxCalls) return parent;
  calls_.push_back({parent, call});
  return static_cast<uint32_t>(calls_.size() - 1);
}

uint32_t LayerTree::summary_name(uint32_t name) {
  if (!options_.merge_instances) return name;
  if (name >= summary_names_.size()) summary_names_.resize(name + 1);
  if (summary_names_[name] == 0) {
    uint32_t merged = name_id(merged_name(names_[name]));
    summary_names_[name] = merged;
  }
  return summary_names_[name];
}

Position LayerTree::enter(Position parent, LayerName call, Order order) {
  if (summary_[parent.summary].depth >= kMaxDepth) return parent;
  Position position;
  position.summary = summary_child(parent.summary, summary_name(call.name), false, order);
  ++summary_[position.summary].invocations;
  if (parent.model != 0 && options_.only_calls) position.model = new_call(parent.model, call);
  if (parent.model != 0 && !options_.only_calls) {
    position.model = model_child(parent.model, call.name, order);
    Node& node = model_[position.model];
    ++node.invocations;
    if (node.name == call.name) node.path = call.path;  // else it is the row of further calls
  }
  return position;
}

void LayerTree::add_cpu_time(Position call, double us) {
  if (call.model != 0 && !options_.only_calls) model_[call.model].cpu_us += us;
}

Position LayerTree::enter_no_module(Position root) { return enter(root, {name_id(kNoModule)}, kLast); }

void LayerTree::add_activity(Position parent, uint32_t name, uint32_t trace, double us, Order order) {
  if (summary_[parent.summary].name == 0) {
    auto [row, added] = no_module_rows_.try_emplace(static_cast<uint64_t>(parent.summary) << 32 | parent.model);
    if (added) row->second = enter_no_module(parent);
    parent = row->second;
  }
  Node& leaf = summary_[summary_child(parent.summary, name, true, order)];
  leaf.cuda_us += us;
  ++leaf.invocations;
  if (parent.model == 0 || options_.only_calls) return;
  Node& row = model_[model_child(parent.model, name, order)];
  row.cuda_us += us;
  row.trace = trace;
  ++row.invocations;
}

std::vector<std::string_view> LayerTree::path(Position position) const {
  std::vector<std::string_view> names;
  for (uint32_t node = position.summary; node != 0 && summary_[node].name != 0; node = summary_[node].parent) {
    names.push_back(names_[summary_[node].name]);
  }
  std::reverse(names.begin(), names.end());
  return names;
}

std::string_view LayerTree::phase(Position position) const {
  uint32_t root = position.summary;
  while (summary_[root].parent != 0) root = summary_[root].parent;
  for (const Phase& phase : phases_) {
    if (phase.summary_root == root) return phase.name;
  }
  return "";
}

void LayerTree::add_library(uint32_t summary_root, uint32_t name, double us, uint64_t count) {
  for (Phase& phase : phases_) {
    if (phase.summary_root != summary_root) continue;
    SummaryNode& row = phase.libraries[names_[name]];
    row.name = names_[name];
    row.cuda_time_us += us;
    row.invocations += static_cast<double>(count);
  }
}

void LayerTree::rename_phase(std::string_view from, std::string_view to) {
  for (Phase& phase : phases_) {
    if (phase.name == from) phase.name = to;
  }
}

// ---- the finished report

namespace {

// The children of each node, in order of first appearance.
template <typename Node>
std::vector<std::vector<uint32_t>> children_of(const std::vector<Node>& nodes) {
  std::vector<std::vector<uint32_t>> children(nodes.size());
  for (uint32_t i = 1; i < nodes.size(); ++i) {
    if (nodes[i].parent != 0) children[nodes[i].parent].push_back(i);
  }
  for (auto& list : children) {
    std::stable_sort(list.begin(), list.end(), [&](uint32_t a, uint32_t b) { return nodes[a].order < nodes[b].order; });
  }
  return children;
}

}  // namespace

void LayerTree::finish(LayerReport& report) const {
  auto summary_children = children_of(summary_);
  auto model_children = children_of(model_);
  std::function<SummaryNode(uint32_t)> summary_row = [&](uint32_t id) {
    const Node& node = summary_[id];
    SummaryNode row{names_[node.name], node.cuda_us, 0, static_cast<double>(node.invocations), {}};
    for (uint32_t child : summary_children[id]) {
      row.children.push_back(summary_row(child));
      row.cuda_time_us += row.children.back().cuda_time_us;
    }
    return row;
  };
  std::function<ModelNode(uint32_t)> model_row = [&](uint32_t id) {
    const Node& node = model_[id];
    ModelNode row{names_[node.name], node.cpu_us, node.cuda_us, 0, names_[node.trace], {}, names_[node.path]};
    for (uint32_t child : model_children[id]) {
      row.children.push_back(model_row(child));
      row.cuda_time_us += row.children.back().cuda_time_us;
    }
    return row;
  };
  for (const Phase& phase : phases_) {
    PhaseReport result{.name = phase.name, .step_count = phase.step_count};
    for (uint32_t root : summary_children[phase.summary_root]) result.summary.push_back(summary_row(root));
    if (result.summary.empty()) continue;
    set_percentages(result.summary);
    for (const auto& [name, row] : phase.libraries) result.libraries.push_back(row);
    std::ranges::stable_sort(result.libraries, std::greater(), &SummaryNode::cuda_time_us);
    set_percentages(result.libraries);
    for (const auto& [number, detailed] : phase.detailed) {
      StepReport step;
      step.number = number;
      if (detailed.sequences && !detailed.disagree) step.metadata["num_running_seqs"] = *detailed.sequences;
      if (options_.only_calls) break;
      for (uint32_t child : model_children[detailed.root.model]) step.model.push_back(model_row(child));
      set_percentages(step.model);
      step.summary = summarize(step.model);
      result.steps.push_back(std::move(step));
    }
    report.phases.push_back(std::move(result));
  }
}

}  // namespace lamina
