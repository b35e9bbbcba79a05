#include "report/render/csv.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "report/format.h"
#include "report/load/layerwise_json.h"
#include "report/names/kernel_name.h"
#include "report/render/text.h"

namespace lamina {
namespace {

using nlohmann::ordered_json;

constexpr std::string_view kEndOfLine = "\r\n";

std::string in_quotes(std::string_view text) {
  std::string result = "\"";
  for (char c : text) result += c == '"' ? "\"\"" : std::string(1, c);
  return result + '"';
}

// Numbers as the JSON has them.
std::string field(const ordered_json& value) {
  if (!value.is_string()) return value.dump();
  std::string text = printable(value.get_ref<const std::string&>());
  return text.find_first_of(",\"") != std::string::npos ? in_quotes(text) : text;
}

// `row` has its fields by their headers.
void append_line(std::string& csv, size_t index, const ordered_json& row) {
  csv += std::to_string(index);
  for (const auto& value : row) csv += ',' + field(value);
  csv += kEndOfLine;
}

std::string headers(const ordered_json& row) {
  std::string line;
  for (const auto& [header, value] : row.items()) line += ',' + header;
  return line + std::string(kEndOfLine);
}

std::string known_path(const SummaryNode&) { return ""; }
std::string known_path(const ModelNode& node) { return node.path; }

template <typename Node>
ordered_json row_of(const Node& node, size_t depth, const std::string& path) {
  ordered_json row = json_entry(node);
  row["depth"] = depth;
  row["path"] = path;
  return row;
}

template <typename Node>
class Tree {
 public:
  explicit Tree(const std::vector<Node>& roots) : csv_(headers(row_of(Node(), 0, ""))) { add_all(roots, 0, ""); }

  std::string csv() && { return std::move(csv_); }

 private:
  void add_all(const std::vector<Node>& nodes, size_t depth, const std::string& above) {
    for (const Node& node : nodes) {
      std::string path = known_path(node);
      if (path.empty()) path = above + node.name;
      append_line(csv_, lines_++, row_of(node, depth, path));
      add_all(node.children, depth + 1, path + "/");
    }
  }

  std::string csv_;
  size_t lines_ = 0;
};

ordered_json row_of(const KernelRow& kernel, const KernelGroups& groups) {
  return {{"name", kernel.name},
          {"count", json_count(kernel.count)},
          {"total_us", kernel.total_us},
          {"mean_us", kernel.mean_us()},
          {"min_us", kernel.min_us},
          {"max_us", kernel.max_us},
          {"pct_cuda_time", kernel.pct_cuda_time},
          {"group", groups.group_of(kernel.name)},
          {"short_name", short_kernel_name(kernel.name)},
          {"layers", fmt::join(kernel.layer_paths, "; ")}};
}

}  // namespace

std::string summary_csv(const std::vector<SummaryNode>& roots) { return Tree(roots).csv(); }

std::string model_csv(const std::vector<ModelNode>& roots) { return Tree(roots).csv(); }

std::string kernel_csv(const std::vector<KernelRow>& kernels, const KernelGroups& groups) {
  std::string csv = headers(row_of(KernelRow(), groups));
  for (size_t i = 0; i < kernels.size(); ++i) append_line(csv, i, row_of(kernels[i], groups));
  return csv;
}

}  // namespace lamina
