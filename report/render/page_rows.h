// The rows of the HTML page: trees laid out as rows, each with its depth, parents before children.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "report/tree/layer_report.h"

namespace lamina {

// What one summary says of one row.
struct SummaryCell {
  double time_us = 0;
  double calls = 0;
  double idle_us = 0;
};

// Summaries that share most of their rows (the steps of a phase, of each rank) as one list of rows and a column of cells
// for each summary. Keeps views of the names.
class SummaryRows {
 public:
  struct Row {
    uint32_t parent;  // an index of rows(), or kNone
    uint32_t depth;
    std::string_view name;
    bool layer = false;  // else a kernel, memcpy or memset
  };
  static constexpr uint32_t kNone = UINT32_MAX;

  void add(const std::vector<SummaryNode>& summary);

  const std::vector<Row>& rows() const { return rows_; }
  size_t columns() const { return columns_.size(); }
  // Zero where the summary lacks the row.
  SummaryCell cell(size_t column, uint32_t row) const;

  // Rows in the order in which the page shows them: parents first, siblings as they came.
  std::vector<uint32_t> order() const;

 private:
  struct Key {
    uint32_t parent;
    std::string_view name;
    bool operator==(const Key&) const = default;
  };
  struct KeyHash {
    size_t operator()(const Key& key) const { return std::hash<std::string_view>()(key.name) * 31 + key.parent; }
  };

  void add(const std::vector<SummaryNode>& nodes, uint32_t parent);

  std::vector<Row> rows_;
  std::unordered_map<Key, uint32_t, KeyHash> index_;
  std::vector<std::vector<SummaryCell>> columns_;  // each as long as its last row
};

struct ModelRow {
  const ModelNode* node;
  uint32_t depth;
};

std::vector<ModelRow> model_rows(const std::vector<ModelNode>& model);

// What choose_heaviest needs of a row.
struct Weight {
  uint32_t depth;
  double time_us;
};

// Whether each of the rows (parents first) is among the `limit` heaviest. A row that is has its parents with it.
std::vector<bool> choose_heaviest(const std::vector<Weight>& rows, size_t limit);

// Shares `limit` out so that small sizes are met in full and the large ones get the same.
std::vector<size_t> share_out(const std::vector<size_t>& sizes, size_t limit);

}  // namespace lamina
