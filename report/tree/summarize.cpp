#include "report/tree/summarize.h"

#include <algorithm>
#include <string_view>
#include <unordered_map>

namespace lamina {
namespace {

// Calls of a list share few names; the index makes a list of many kernels linear.
class RowsByName {
 public:
  explicit RowsByName(std::vector<SummaryNode>& rows) : rows_(rows) {
    for (size_t i = 0; i < rows.size(); ++i) index_.try_emplace(rows[i].name, i);
  }

  SummaryNode& find(const std::string& name) {
    auto [row, added] = index_.try_emplace(name, rows_.size());
    if (added) rows_.push_back({name, 0, 0, 0, {}});
    return rows_[row->second];
  }

 private:
  std::vector<SummaryNode>& rows_;
  std::unordered_map<std::string, size_t> index_;
};

void include(std::optional<Durations>& each, const Durations& more) {
  each = each ? Durations{std::min(each->min_us, more.min_us), std::max(each->max_us, more.max_us)} : more;
}

void add_model(std::vector<SummaryNode>& into, const std::vector<const std::vector<ModelNode>*>& lists) {
  RowsByName rows(into);
  std::unordered_map<std::string, std::vector<const std::vector<ModelNode>*>> children;
  for (const auto* list : lists) {
    for (const ModelNode& node : *list) {
      std::string name = is_activity(node) ? node.name : merged_name(node.name);
      SummaryNode& row = rows.find(name);
      if (is_activity(node)) include(row.each, {node.cuda_time_us, node.cuda_time_us});
      row.cuda_time_us += node.cuda_time_us;
      ++row.invocations;
      if (!node.children.empty()) children[name].push_back(&node.children);
    }
  }
  for (SummaryNode& row : into) {
    if (auto found = children.find(row.name); found != children.end()) add_model(row.children, found->second);
  }
}

template <typename Row>
void set_shares(std::vector<Row>& rows, double total) {
  for (Row& row : rows) {
    row.pct_cuda_time = total > 0 ? 100 * row.cuda_time_us / total : 0;
    set_shares(row.children, total);
  }
}

template <typename Row>
void set_shares_of_roots(std::vector<Row>& roots) {
  double total = 0;
  for (const Row& root : roots) total += root.cuda_time_us;
  set_shares(roots, total);
}

}  // namespace

std::string merged_name(std::string_view layer) {
  auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  size_t end = std::min(layer.find('('), layer.size());
  size_t digits = end;
  while (digits > 0 && is_digit(layer[digits - 1])) --digits;
  if (digits == end || digits < 2 || layer[digits - 1] != '.') return std::string(layer);
  return std::string(layer.substr(0, digits)) + "*" + std::string(layer.substr(end));
}

bool is_activity(const SummaryNode& node) { return node.each || (node.children.empty() && node.cuda_time_us > 0); }
bool is_activity(const ModelNode& node) { return node.children.empty() && node.cpu_time_us == 0; }

std::vector<SummaryNode> summarize(const std::vector<ModelNode>& model) {
  std::vector<SummaryNode> summary;
  add_model(summary, {&model});
  set_percentages(summary);
  return summary;
}

void add_summary(std::vector<SummaryNode>& into, const std::vector<SummaryNode>& from) {
  RowsByName rows(into);
  for (const SummaryNode& node : from) {
    SummaryNode& row = rows.find(node.name);
    row.cuda_time_us += node.cuda_time_us;
    row.invocations += node.invocations;
    if (node.each) include(row.each, *node.each);
    add_summary(row.children, node.children);
  }
}

void set_percentages(std::vector<SummaryNode>& roots) { set_shares_of_roots(roots); }
void set_percentages(std::vector<ModelNode>& roots) { set_shares_of_roots(roots); }

}  // namespace lamina
