#include "report/render/page_rows.h"

#include <algorithm>
#include <numeric>

#include "report/tree/summarize.h"

namespace lamina {

void SummaryRows::add(const std::vector<SummaryNode>& summary) {
  columns_.emplace_back();
  add(summary, kNone);
}

void SummaryRows::add(const std::vector<SummaryNode>& nodes, uint32_t parent) {
  for (const SummaryNode& node : nodes) {
    auto [found, added] = index_.try_emplace(Key{parent, node.name}, static_cast<uint32_t>(rows_.size()));
    uint32_t row = found->second;
    if (added) rows_.push_back({parent, parent == kNone ? 0 : rows_[parent].depth + 1, node.name});
    if (!is_activity(node) || !node.children.empty()) rows_[row].layer = true;
    std::vector<SummaryCell>& column = columns_.back();
    if (row >= column.size()) column.resize(row + 1);
    column[row].time_us += node.cuda_time_us;
    column[row].calls += node.invocations;
    column[row].idle_us += node.idle_before_us;
    add(node.children, row);
  }
}

SummaryCell SummaryRows::cell(size_t column, uint32_t row) const {
  return row < columns_[column].size() ? columns_[column][row] : SummaryCell();
}

std::vector<uint32_t> SummaryRows::order() const {
  std::vector<std::vector<uint32_t>> children(rows_.size() + 1);  // the last: the roots
  for (uint32_t row = 0; row < rows_.size(); ++row) {
    children[rows_[row].parent == kNone ? rows_.size() : rows_[row].parent].push_back(row);
  }
  std::vector<uint32_t> order, open(children.back().rbegin(), children.back().rend());
  while (!open.empty()) {
    uint32_t row = open.back();
    open.pop_back();
    order.push_back(row);
    open.insert(open.end(), children[row].rbegin(), children[row].rend());
  }
  return order;
}

namespace {

void add_model_rows(std::vector<ModelRow>& rows, const std::vector<ModelNode>& nodes, uint32_t depth) {
  for (const ModelNode& node : nodes) {
    rows.push_back({&node, depth});
    add_model_rows(rows, node.children, depth + 1);
  }
}

}  // namespace

std::vector<ModelRow> model_rows(const std::vector<ModelNode>& model) {
  std::vector<ModelRow> rows;
  add_model_rows(rows, model, 0);
  return rows;
}

std::vector<bool> choose_heaviest(const std::vector<Weight>& rows, size_t limit) {
  if (rows.size() <= limit) return std::vector<bool>(rows.size(), true);
  // Nothing weighs more than what it is in: so the first rows by weight, and then by place, have their parents among them.
  std::vector<double> weights(rows.size());
  std::vector<double> path;
  for (size_t row = 0; row < rows.size(); ++row) {
    path.resize(rows[row].depth);
    weights[row] = path.empty() ? rows[row].time_us : std::min(path.back(), rows[row].time_us);
    path.push_back(weights[row]);
  }
  std::vector<uint32_t> heaviest(rows.size());
  std::iota(heaviest.begin(), heaviest.end(), 0u);
  std::ranges::nth_element(heaviest, heaviest.begin() + static_cast<std::ptrdiff_t>(limit), [&](uint32_t a, uint32_t b) {
    return weights[a] != weights[b] ? weights[a] > weights[b] : a < b;
  });
  std::vector<bool> chosen(rows.size(), false);
  for (size_t i = 0; i < limit; ++i) chosen[heaviest[i]] = true;
  return chosen;
}

std::vector<size_t> share_out(const std::vector<size_t>& sizes, size_t limit) {
  std::vector<size_t> by_size(sizes.size());
  std::iota(by_size.begin(), by_size.end(), size_t{0});
  std::ranges::sort(by_size, {}, [&](size_t i) { return sizes[i]; });
  std::vector<size_t> shares(sizes.size());
  size_t left = sizes.size();
  for (size_t i : by_size) {
    shares[i] = std::min(sizes[i], limit / left--);
    limit -= shares[i];
  }
  return shares;
}

}  // namespace lamina
