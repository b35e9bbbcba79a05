#include "report/tree/layer_tree.h"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <numeric>

#include "report/tree/summarize.h"

namespace lamina {
namespace {

constexpr std::string_view kNoModule = "(no module)";
constexpr std::string_view kFurther = "(further calls)";
constexpr Order kLast{std::numeric_limits<uint64_t>::max(), 0};
constexpr uint64_t kActivityBit = uint64_t{1} << 63;

constexpr double GpuTime::*kGpuTimes[] = {&GpuTime::span_us,    &GpuTime::busy_us,  &GpuTime::communication_us, &GpuTime::exposed_communication_us,
                                          &GpuTime::waiting_us, &GpuTime::before_us};

void add_time(std::optional<GpuTime>& sum, const GpuTime& time) {
  if (!sum) sum.emplace();
  for (auto part : kGpuTimes) *sum.*part += time.*part;
}

}  // namespace

uint32_t LayerTree::name_id(std::string_view text) {
  auto [found, added] = name_ids_.try_emplace(std::string(text), static_cast<uint32_t>(names_.size()));
  if (added) names_.emplace_back(text);
  return found->second;
}

uint32_t LayerTree::new_node(uint32_t parent, uint32_t name, bool is_activity, Order order) {
  uint32_t depth = parent != 0 ? summary_[parent].depth + 1 : 0;
  summary_.push_back({.parent = parent, .name = name, .depth = depth, .is_activity = is_activity, .order = order, .sums = {}});
  return static_cast<uint32_t>(summary_.size() - 1);
}

uint32_t LayerTree::new_row(uint32_t parent, uint32_t name, Order order) {
  model_.push_back({.parent = parent, .name = name, .order = order});
  return static_cast<uint32_t>(model_.size() - 1);
}

LayerTree::Phase& LayerTree::find_phase(std::string_view name) {
  auto found = std::find_if(phases_.begin(), phases_.end(), [&](const Phase& phase) { return phase.name == name; });
  if (found != phases_.end()) return *found;
  Phase& phase = phases_.emplace_back();
  phase.name = name;
  phase.summary_root = new_node(0, 0, false, {});
  return phase;
}

Position LayerTree::step(std::string_view name, uint32_t number) {
  Phase& phase = find_phase(name);
  if (number >= phase.steps.size()) phase.steps.resize(number + 1);
  if (!phase.steps[number]) {
    phase.steps[number] = true;
    bool first = phase.step_count++ == 0;
    bool model = (first && options_.first_model) || options_.details(name, number);
    if (model || options_.step_summaries) {
      phase.kept[number] = static_cast<uint32_t>(kept_.size());
      kept_.emplace_back().number = number;
      if (model) kept_.back().model = options_.only_calls ? new_call(0, {}) : new_row(0, 0, {});
    }
  }
  auto kept = phase.kept.find(number);
  if (kept == phase.kept.end()) return {phase.summary_root, 0, 0};
  return {phase.summary_root, kept_[kept->second].model, kept->second};
}

void LayerTree::set_sequences(std::string_view name, uint32_t number, uint64_t sequences) {
  Phase& phase = find_phase(name);
  auto kept = phase.kept.find(number);
  if (kept == phase.kept.end()) return;
  Step& step = kept_[kept->second];
  step.disagree |= step.sequences && *step.sequences != sequences;
  step.sequences = sequences;
}

uint32_t LayerTree::summary_child(uint32_t parent, uint32_t name, bool activity, Order order) {
  uint64_t key = static_cast<uint64_t>(parent) << 32 | name | (activity ? kActivityBit : 0);
  auto [found, added] = summary_children_.try_emplace(key);
  if (added) *found = new_node(parent, name, activity, order);
  Node& node = summary_[*found];
  node.order = std::min(node.order, order);
  return *found;
}

uint32_t LayerTree::model_child(uint32_t parent, uint32_t name, Order order) {
  if (model_.size() < options_.max_model_nodes) return new_row(parent, name, order);
  auto [row, added] = further_rows_.try_emplace(parent, 0);
  if (added) row->second = new_row(parent, name_id(kFurther), kLast);
  return row->second;
}

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
  Position position{summary_child(parent.summary, summary_name(call.name), false, order), 0, parent.step};
  ++summary_[position.summary].sums.invocations;
  if (RowSums* row = step_row(position)) ++row->invocations;
  if (parent.model != 0 && options_.only_calls) position.model = new_call(parent.model, call);
  if (parent.model != 0 && !options_.only_calls) {
    position.model = model_child(parent.model, call.name, order);
    ModelRow& row = model_[position.model];
    if (row.name == call.name) row.path = call.path;  // else it is the row of further calls
  }
  return position;
}

// What the step adds to the row, if that is kept.
RowSums* LayerTree::step_row(Position at) {
  return at.step != 0 && options_.step_summaries ? &kept_[at.step].rows.at(at.summary) : nullptr;
}

void LayerTree::add_cpu_time(Position call, double us) {
  if (call.model != 0 && !options_.only_calls) model_[call.model].cpu_us += us;
}

Position LayerTree::enter_no_module(Position root) { return enter(root, {name_id(kNoModule)}, kLast); }

uint32_t LayerTree::add_activity(Position parent, uint32_t name, uint32_t trace, double us, Order order) {
  if (summary_[parent.summary].name == 0) {
    auto [row, added] = no_module_rows_.try_emplace({parent.summary, parent.step});
    if (added) row->second = enter_no_module(parent);
    parent = row->second;
  }
  uint32_t leaf = summary_child(parent.summary, name, true, order);
  summary_[leaf].sums.add_activity(us);
  if (RowSums* row = step_row({leaf, 0, parent.step})) row->add_activity(us);
  if (parent.model == 0 || options_.only_calls) return leaf;
  ModelRow& row = model_[model_child(parent.model, name, order)];
  row.cuda_us += us;
  row.trace = trace;
  return leaf;
}

void LayerTree::add_idle(Position row, double us) {
  summary_[row.summary].sums.idle_us += us;
  if (row.step != 0) kept_[row.step].rows.at(row.summary).idle_us += us;
}

void LayerTree::add_gpu_time(Position root, const GpuTime& time) {
  for (Phase& phase : phases_) {
    if (phase.summary_root == root.summary) add_time(phase.gpu, time);
  }
  if (root.step != 0) add_time(kept_[root.step].gpu, time);
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

// Builds the rows of a report from those of the tree.
class LayerTree::Finisher {
 public:
  explicit Finisher(const LayerTree& tree)
      : tree_(tree), summary_children_(children_of(tree.summary_)), model_children_(children_of(tree.model_)) {}

  PhaseReport phase(const Phase& phase) const {
    PhaseReport result{.name = phase.name, .step_count = phase.step_count, .gpu = phase.gpu};
    result.summary = summary_rows(phase.summary_root);
    if (result.summary.empty()) return result;
    set_percentages(result.summary);
    for (const auto& [name, row] : phase.libraries) result.libraries.push_back(row);
    std::ranges::stable_sort(result.libraries, std::greater(), &SummaryNode::cuda_time_us);
    set_percentages(result.libraries);
    for (const auto& [number, kept] : phase.kept) result.steps.push_back(step(phase, tree_.kept_[kept]));
    return result;
  }

 private:
  StepReport step(const Phase& phase, const Step& kept) const {
    StepReport step;
    step.number = kept.number;
    step.gpu = kept.gpu;
    if (kept.sequences && !kept.disagree) (*step.metadata)["num_running_seqs"] = *kept.sequences;
    bool has_model = kept.model != 0 && !tree_.options_.only_calls;
    if (has_model) step.model = model_rows(kept.model);
    set_percentages(step.model);
    if (has_model) {
      step.summary = summarize(step.model);
      add_idle(step.summary, phase.summary_root, kept.rows);
    } else {
      step.summary = step_rows(phase.summary_root, kept.rows);
      set_percentages(step.summary);
    }
    return step;
  }

  SummaryNode summary_row(const Node& node, const RowSums& sums, std::vector<SummaryNode> children) const {
    SummaryNode row{tree_.names_[node.name], sums.cuda_us, 0, static_cast<double>(sums.invocations), std::move(children), sums.idle_us};
    if (node.is_activity) row.each = {sums.min_us, sums.max_us};
    for (const SummaryNode& child : row.children) {
      row.cuda_time_us += child.cuda_time_us;
      row.idle_before_us += child.idle_before_us;
    }
    return row;
  }

  // To the summary of a model tree, which has the same rows by name. Gives the sum.
  double add_idle(std::vector<SummaryNode>& rows, uint32_t parent, const StepRows& step) const {
    std::unordered_map<std::string_view, SummaryNode*> by_name;
    for (SummaryNode& row : rows) by_name.try_emplace(row.name, &row);
    double sum = 0;
    for (uint32_t id : summary_children_[parent]) {
      auto row = by_name.find(tree_.names_[tree_.summary_[id].name]);
      if (row == by_name.end()) continue;
      double idle = step.row(id).idle_us + add_idle(row->second->children, id, step);
      row->second->idle_before_us += idle;
      sum += idle;
    }
    return sum;
  }

  std::vector<SummaryNode> summary_rows(uint32_t parent) const {
    std::vector<SummaryNode> rows;
    for (uint32_t id : summary_children_[parent]) rows.push_back(summary_row(tree_.summary_[id], tree_.summary_[id].sums, summary_rows(id)));
    return rows;
  }

  // Those of the summary in which the step has a part, in the same order.
  std::vector<SummaryNode> step_rows(uint32_t parent, const StepRows& step) const {
    std::vector<SummaryNode> rows;
    auto in_step = [&](uint32_t id) { return step.row(id).invocations > 0; };
    rows.reserve(static_cast<size_t>(std::ranges::count_if(summary_children_[parent], in_step)));
    for (uint32_t id : summary_children_[parent]) {
      if (in_step(id)) rows.push_back(summary_row(tree_.summary_[id], step.row(id), step_rows(id, step)));
    }
    return rows;
  }

  std::vector<ModelNode> model_rows(uint32_t parent) const {
    std::vector<ModelNode> rows;
    rows.reserve(model_children_[parent].size());
    for (uint32_t id : model_children_[parent]) {
      const ModelRow& row = tree_.model_[id];
      rows.push_back({tree_.names_[row.name], row.cpu_us, row.cuda_us, 0, tree_.names_[row.trace], model_rows(id), tree_.names_[row.path]});
      for (const ModelNode& child : rows.back().children) rows.back().cuda_time_us += child.cuda_time_us;
    }
    return rows;
  }

  const LayerTree& tree_;
  std::vector<std::vector<uint32_t>> summary_children_, model_children_;
};

void LayerTree::finish(LayerReport& report) const {
  Finisher finisher(*this);
  for (const Phase& phase : phases_) {
    PhaseReport result = finisher.phase(phase);
    if (!result.summary.empty()) report.phases.push_back(std::move(result));
  }
}

}  // namespace lamina
