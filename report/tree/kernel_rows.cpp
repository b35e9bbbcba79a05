#include "report/tree/kernel_rows.h"

#include <algorithm>
#include <functional>
#include <string>
#include <unordered_map>
#include <unordered_set>

#include "report/tree/summarize.h"

namespace lamina {
namespace {

class KernelRows {
 public:
  void add_all(const std::vector<SummaryNode>& nodes, const std::string& layer, const std::string& path) {
    for (const SummaryNode& node : nodes) {
      if (node.each) add(node, layer, path);
      if (!node.children.empty()) add_all(node.children, node.name, path.empty() ? node.name : path + "/" + node.name);
    }
  }

  std::vector<KernelRow> finish() {
    double total = 0;
    for (const KernelRow& row : rows_) total += row.total_us;
    for (KernelRow& row : rows_) row.pct_cuda_time = total > 0 ? 100 * row.total_us / total : 0;
    std::ranges::stable_sort(rows_, std::greater(), &KernelRow::total_us);
    return std::move(rows_);
  }

 private:
  void add(const SummaryNode& node, const std::string& layer, const std::string& path) {
    auto [found, added] = index_.try_emplace(node.name, rows_.size());
    if (added) rows_.push_back({node.name, 0, 0, node.each->min_us, node.each->max_us});
    KernelRow& row = rows_[found->second];
    row.count += node.invocations;
    row.total_us += node.cuda_time_us;
    row.min_us = std::min(row.min_us, node.each->min_us);
    row.max_us = std::max(row.max_us, node.each->max_us);
    row.layer_paths.push_back(path);  // a new one: of a layer's rows each has another name
    if (seen_.insert(row.name + '\0' + layer).second) row.layers.push_back(layer);
  }

  std::vector<KernelRow> rows_;
  std::unordered_map<std::string, size_t> index_;
  std::unordered_set<std::string> seen_;  // kernel and layer
};

}  // namespace

std::vector<KernelRow> kernel_rows(const PhaseReport& phase) {
  std::vector<KernelRow> rows = kernel_rows(phase.summary);
  if (!rows.empty()) return rows;
  std::vector<SummaryNode> sum;
  for (const StepReport& step : phase.steps) add_summary(sum, summarize(step.model));
  return kernel_rows(sum);
}

std::vector<KernelRow> kernel_rows(const StepReport& step) { return kernel_rows(summarize(step.model)); }

std::vector<KernelRow> kernel_rows(const std::vector<SummaryNode>& summary) {
  KernelRows rows;
  rows.add_all(summary, "", "");
  return rows.finish();
}

}  // namespace lamina
