#include "report/render/tables.h"

#include <algorithm>
#include <array>
#include <span>
#include <string_view>

#include "report/format.h"
#include "report/names/kernel_name.h"
#include "report/names/trace_name.h"
#include "report/render/text.h"
#include "report/tree/summarize.h"

namespace lamina {
namespace {

constexpr std::string_view kSeparator = " | ";
constexpr std::string_view kEllipsis = "...";

struct Column {
  std::string_view header;
  size_t width;
  bool is_text = false;
  int decimals = 2;
};

constexpr Column kSummaryColumns[] = {
    {"name", 80, true}, {"cuda_time_us", 12}, {"pct_cuda_time", 12}, {"invocations", 15}};
constexpr Column kIdleColumns[] = {{"name", 80, true},    {"cuda_time_us", 12}, {"pct_cuda_time", 12},
                                   {"invocations", 15}, {"idle_us", 12},      {"pct_idle", 12}};
constexpr Column kModelColumns[] = {
    {"name", 60, true},          {"cpu_time_us", 12}, {"cuda_time_us", 12},
    {"pct_cuda_time", 12}, {"trace", 60, true}, {"path", 60, true}};
constexpr Column kKernelColumns[] = {{"name", 60, true}, {"count", 10, false, 0}, {"total_us", 12}, {"mean_us", 10}, {"min_us", 10},
                                     {"max_us", 10},     {"pct_cuda_time", 13},   {"group", 13, true}, {"layers", 40, true}};
constexpr size_t kPathColumn = 5;  // not there unless it is asked for

// `text` in exactly `width` characters.
void append_text(std::string& line, std::string_view text, size_t width) {
  size_t length = characters(text);
  if (length > width) {
    line += first_characters(text, width - kEllipsis.size());
    line += kEllipsis;
  } else {
    line += text;
    line.append(width - length, ' ');
  }
}

std::string indented(size_t depth, std::string_view name) {
  std::string text = depth > 0 ? "|" + std::string(depth, '-') + " " : "";
  return text + printable(name);
}

std::string shown_name(const std::string& name, bool is_kernel, Names names) {
  return names == Names::kShort && is_kernel ? short_kernel_name(name) : name;
}

// ---- rows

// A cell is text or a number, as its column is.
struct Cell {
  std::string text;
  double number = 0;
};

std::array<Cell, 4> cells(const SummaryNode& node, size_t depth, Names names) {
  return {{{indented(depth, shown_name(node.name, is_activity(node), names))},
           {{}, node.cuda_time_us},
           {{}, node.pct_cuda_time},
           {{}, node.invocations}}};
}

std::array<Cell, 6> cells(const ModelNode& node, size_t depth, Names names) {
  return {{{indented(depth, shown_name(node.name, is_activity(node), names))},
           {{}, node.cpu_time_us},
           {{}, node.cuda_time_us},
           {{}, node.pct_cuda_time},
           {printable(names == Names::kShort ? short_trace(node.trace) : node.trace)},
           {printable(node.path)}}};
}

std::array<Cell, 9> cells(const KernelRow& row, const KernelGroups& groups, Names names) {
  return {{{printable(shown_name(row.name, true, names))},
           {{}, row.count},
           {{}, row.total_us},
           {{}, row.mean_us()},
           {{}, row.min_us},
           {{}, row.max_us},
           {{}, row.pct_cuda_time},
           {printable(groups.group_of(row.name))},
           {printable(fmt::join(row.layers, ", "))}}};
}

// Parents before children. Not recursive: a tree may be deep.
template <typename Node, typename Visit>
void visit_all(const std::vector<Node>& roots, Visit&& visit) {
  std::vector<std::span<const Node>> rest{roots};  // by depth: what is left of each list of siblings
  while (!rest.empty()) {
    if (rest.back().empty()) {
      rest.pop_back();
      continue;
    }
    const Node& node = rest.back().front();
    rest.back() = rest.back().subspan(1);
    visit(node, rest.size() - 1);
    if (!node.children.empty()) rest.emplace_back(node.children);
  }
}

void append_header(std::string& table, std::span<const Column> columns) {
  size_t width = kSeparator.size() * (columns.size() - 1);
  for (const Column& column : columns) {
    if (&column != columns.data()) table += kSeparator;
    append_text(table, column.header, column.width);
    width += column.width;
  }
  table += '\n';
  table.append(width, '=');
  table += '\n';
}

void append_row(std::string& table, std::span<const Column> columns, std::span<const Cell> row) {
  for (size_t i = 0; i < columns.size(); ++i) {
    if (i > 0) table += kSeparator;
    if (columns[i].is_text) {
      append_text(table, row[i].text, columns[i].width);
    } else {
      fmt::append(table, "{:>{}.{}f}", row[i].number, columns[i].width, columns[i].decimals);
    }
  }
  table += '\n';
}

// `each_row` gives every row to the function that it is called with.
template <typename EachRow>
std::string make_table(std::span<const Column> usual, Names names, EachRow each_row) {
  std::vector<Column> columns(usual.begin(), usual.end());
  if (names == Names::kFull) {
    each_row([&](std::span<const Cell> row) {
      for (size_t i = 0; i < columns.size(); ++i) columns[i].width = std::max(columns[i].width, characters(row[i].text));
    });
  }
  std::string table;
  append_header(table, columns);
  each_row([&](std::span<const Cell> row) { append_row(table, columns, row); });
  return table;
}

template <typename Node>
std::string tree_table(std::span<const Column> columns, Names names, const std::vector<Node>& roots) {
  return make_table(columns, names, [&](auto&& add) {
    visit_all(roots, [&](const Node& node, size_t depth) { add(cells(node, depth, names)); });
  });
}

}  // namespace

std::string summary_table(const std::vector<SummaryNode>& roots, Names names) { return tree_table(kSummaryColumns, names, roots); }

std::string idle_table(const std::vector<SummaryNode>& roots, const GpuTime& time, Names names) {
  return make_table(kIdleColumns, names, [&](auto&& add) {
    visit_all(roots, [&](const SummaryNode& node, size_t depth) {
      double share = time.span_us > 0 ? 100 * node.idle_before_us / time.span_us : 0;
      auto [name, cuda_time, pct_cuda_time, invocations] = cells(node, depth, names);
      add(std::array<Cell, 6>{name, cuda_time, pct_cuda_time, invocations, Cell{{}, node.idle_before_us}, Cell{{}, share}});
    });
  });
}

std::string model_table(const std::vector<ModelNode>& roots, Names names, Paths paths) {
  std::span<const Column> columns(kModelColumns);
  return tree_table(paths == Paths::kShown ? columns : columns.first(kPathColumn), names, roots);
}

std::string kernel_table(const std::vector<KernelRow>& kernels, const KernelGroups& groups, Names names) {
  return make_table(kKernelColumns, names, [&](auto&& add) {
    for (const KernelRow& row : kernels) add(cells(row, groups, names));
  });
}

}  // namespace lamina
