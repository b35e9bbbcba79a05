#include "report/render/tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <span>
#include <string_view>

namespace lamina {
namespace {

constexpr std::string_view kSeparator = " | ";
constexpr std::string_view kEllipsis = "...";
constexpr std::string_view kReplacement = "\xef\xbf\xbd";  // U+FFFD

struct Column {
  std::string_view header;
  size_t width;
  bool is_text = false;
};

constexpr Column kSummaryColumns[] = {
    {"name", 80, true}, {"cuda_time_us", 12}, {"pct_cuda_time", 12}, {"invocations", 15}};
constexpr Column kIdleColumns[] = {{"name", 80, true},    {"cuda_time_us", 12}, {"pct_cuda_time", 12},
                                   {"invocations", 15}, {"idle_us", 12},      {"pct_idle", 12}};
constexpr Column kModelColumns[] = {
    {"name", 60, true},          {"cpu_time_us", 12}, {"cuda_time_us", 12},
    {"pct_cuda_time", 12}, {"trace", 60, true}, {"path", 60, true}};
constexpr size_t kPathColumn = 5;  // not there unless it is asked for

// ---- text

// How many bytes the UTF-8 character at the front of `text` has; 0 when there is none.
size_t character_size(std::string_view text) {
  auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  unsigned char first = byte(0);
  size_t size = first < 0x80 ? 1 : first < 0xc2 ? 0 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : first < 0xf5 ? 4 : 0;
  if (size > text.size()) return 0;
  for (size_t i = 1; i < size; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
  }
  return size;
}

// Whether a terminal would act on the character instead of showing it: C0, DEL and C1.
bool is_control(std::string_view character) {
  auto first = static_cast<unsigned char>(character[0]);
  if (character.size() == 1) return first < 0x20 || first == 0x7f;
  return first == 0xc2 && static_cast<unsigned char>(character[1]) < 0xa0;
}

// Valid UTF-8 on one line, whatever the name holds.
std::string printable(std::string_view text) {
  std::string result;
  result.reserve(text.size());
  while (!text.empty()) {
    size_t size = character_size(text);
    std::string_view character = text.substr(0, std::max<size_t>(size, 1));
    result += size == 0 ? kReplacement : is_control(character) ? " " : character;
    text.remove_prefix(character.size());
  }
  return result;
}

bool starts_character(char byte) { return (static_cast<unsigned char>(byte) & 0xc0) != 0x80; }

size_t characters(std::string_view text) { return static_cast<size_t>(std::ranges::count_if(text, starts_character)); }

std::string_view first_characters(std::string_view text, size_t count) {
  size_t end = 0;
  while (end < text.size() && (count > 0 || !starts_character(text[end]))) count -= starts_character(text[end++]);
  return text.substr(0, end);
}

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

// ---- rows

// A cell is text or a number, as its column is.
struct Cell {
  std::string text;
  double number = 0;
};

std::array<Cell, 4> cells(const SummaryNode& node, size_t depth) {
  return {{{indented(depth, node.name)}, {{}, node.cuda_time_us}, {{}, node.pct_cuda_time}, {{}, node.invocations}}};
}

std::array<Cell, 6> cells(const ModelNode& node, size_t depth) {
  return {{{indented(depth, node.name)},
           {{}, node.cpu_time_us},
           {{}, node.cuda_time_us},
           {{}, node.pct_cuda_time},
           {printable(node.trace)},
           {printable(node.path)}}};
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
      fmt::format_to(std::back_inserter(table), "{:>{}.2f}", row[i].number, columns[i].width);
    }
  }
  table += '\n';
}

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
  return make_table(columns, names, [&](auto&& add) { visit_all(roots, [&](const Node& node, size_t depth) { add(cells(node, depth)); }); });
}

}  // namespace

std::string summary_table(const std::vector<SummaryNode>& roots, Names names) { return tree_table(kSummaryColumns, names, roots); }

std::string idle_table(const std::vector<SummaryNode>& roots, const GpuTime& time, Names names) {
  return make_table(kIdleColumns, names, [&](auto&& add) {
    visit_all(roots, [&](const SummaryNode& node, size_t depth) {
      double share = time.span_us > 0 ? 100 * node.idle_before_us / time.span_us : 0;
      auto [name, cuda_time, pct_cuda_time, invocations] = cells(node, depth);
      add(std::array<Cell, 6>{name, cuda_time, pct_cuda_time, invocations, Cell{{}, node.idle_before_us}, Cell{{}, share}});
    });
  });
}

std::string model_table(const std::vector<ModelNode>& roots, Names names, Paths paths) {
  std::span<const Column> columns(kModelColumns);
  return tree_table(paths == Paths::kShown ? columns : columns.first(kPathColumn), names, roots);
}

}  // namespace lamina
