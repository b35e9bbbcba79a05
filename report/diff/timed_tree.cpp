#include "report/diff/timed_tree.h"

#include <algorithm>
#include <string_view>
#include <unordered_map>

namespace lamina {
namespace {

std::vector<TimedNode> mean_tree(const std::vector<SummaryNode>& summary, double steps, size_t kept_steps) {
  std::vector<TimedNode> nodes;
  nodes.reserve(summary.size());
  for (const SummaryNode& row : summary) {
    TimedNode& node = nodes.emplace_back(row.name, StepTimes::zero(kept_steps));
    node.times.mean_us = row.cuda_time_us / steps;
    node.children = mean_tree(row.children, steps, kept_steps);
  }
  return nodes;
}

// Siblings of one name, as a layer and a kernel may be, are told apart by their order.
std::string key_of(const std::string& name, size_t occurrence) { return name + '\0' + std::to_string(occurrence); }

// Gives `nodes` the times of step `step`, whose rows under the same parent are in `lists`, one list a step.
using StepLists = std::vector<const std::vector<SummaryNode>*>;  // by step; null: the parent is not in it

void add_steps(std::vector<TimedNode>& nodes, const StepLists& lists) {
  if (nodes.empty()) return;
  std::unordered_map<std::string, size_t> index;
  std::unordered_map<std::string_view, size_t> seen;
  for (size_t i = 0; i < nodes.size(); ++i) index.emplace(key_of(nodes[i].name, seen[nodes[i].name]++), i);
  std::vector<StepLists> children(nodes.size(), StepLists(lists.size()));
  for (size_t step = 0; step < lists.size(); ++step) {
    if (!lists[step]) continue;
    seen.clear();
    for (const SummaryNode& row : *lists[step]) {
      auto found = index.find(key_of(row.name, seen[row.name]++));
      if (found == index.end()) continue;
      nodes[found->second].times.us[step] += row.cuda_time_us;
      children[found->second][step] = &row.children;
    }
  }
  for (size_t i = 0; i < nodes.size(); ++i) add_steps(nodes[i].children, children[i]);
}

}  // namespace

std::vector<TimedNode> timed_tree(const PhaseReport& phase) {
  auto steps = static_cast<double>(std::max<uint64_t>(phase.step_count, 1));
  std::vector<TimedNode> nodes = mean_tree(phase.summary, steps, phase.steps.size());
  StepLists lists;
  for (const StepReport& step : phase.steps) lists.push_back(&step.summary);
  add_steps(nodes, lists);
  return nodes;
}

}  // namespace lamina
