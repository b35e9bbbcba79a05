#include "report/names/kernel_groups.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "report/errors.h"
#include "report/format.h"
#include "report/load/json_text.h"
#include "report/names/kernel_groups_json.h"  // made from kernel_groups.json by CMake

namespace lamina {
namespace {

using nlohmann::ordered_json;

constexpr std::string_view kOther = "other";
constexpr size_t kMaxFileBytes = 1u << 20;

std::string in_small_letters(std::string_view text) {
  std::string small(text);
  std::ranges::transform(small, small.begin(), [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  return small;
}

// What stands in the file where it should not, or does not where it should.
struct Place {
  const std::string& file;
  std::string where;

  [[noreturn]] void fail(std::string_view what) const { throw InputError(fmt::format("{}: {} {}", file, where, what)); }
  Place at(const std::string& more) const { return {file, where + more}; }
};

const std::string& text_at(const ordered_json& value, const Place& place) {
  if (!value.is_string()) place.fail("is not a string");
  const std::string& text = value.get_ref<const std::string&>();
  if (text.empty()) place.fail("is empty");
  return text;
}

const ordered_json& member(const ordered_json& row, const char* key, const Place& place) {
  if (!row.is_object()) place.fail("is not an object");
  auto found = row.find(key);
  if (found == row.end()) place.at(fmt::format(".{}", key)).fail("is missing");
  return *found;
}

void check_keys(const ordered_json& row, const Place& place) {
  for (const auto& [key, value] : row.items()) {
    if (key != "group" && key != "names") place.at("." + key).fail("is not known: a row has group and names");
  }
}

std::string read_text(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  if (!file || !(text << file.rdbuf())) throw InputError(fmt::format("{}: cannot be read: {}", path, strerror(errno)));
  if (text.view().size() > kMaxFileBytes) throw InputError(path + ": too large for groups of kernels");
  return text.str();
}

}  // namespace

std::vector<KernelGroups::Row> KernelGroups::parse(const std::string& text, const std::string& file_name) {
  ordered_json document = parse_json(text, file_name);
  if (!document.is_array()) throw InputError(file_name + R"(: not an array of rows such as {"group": "gemm", "names": ["*gemm*"]})");
  std::vector<Row> rows;
  for (size_t i = 0; i < document.size(); ++i) {
    Place place{file_name, fmt::format("row {}", i + 1)};
    Row row{text_at(member(document[i], "group", place), place.at(".group")), {}};
    const ordered_json& names = member(document[i], "names", place);
    check_keys(document[i], place);
    if (!names.is_array()) place.at(".names").fail("is not an array");
    for (size_t n = 0; n < names.size(); ++n)
      row.names.push_back(in_small_letters(text_at(names[n], place.at(fmt::format(".names[{}]", n)))));
    rows.push_back(std::move(row));
  }
  return rows;
}

const std::vector<KernelGroups::Row>& KernelGroups::built_in() {
  static const std::vector<Row> kRows = parse(kKernelGroupsJson, "kernel_groups.json");
  return kRows;
}

KernelGroups::KernelGroups() : KernelGroups(built_in()) {}

KernelGroups KernelGroups::from_file(const std::string& path) {
  std::vector<Row> rows = parse(read_text(path), path);
  rows.insert(rows.end(), built_in().begin(), built_in().end());
  return KernelGroups(std::move(rows));
}

std::string_view KernelGroups::group_of(std::string_view name) const {
  auto [found, added] = known_.try_emplace(std::string(name), 0);
  if (added) {
    std::string small = in_small_letters(name);
    auto row = std::ranges::find_if(rows_, [&](const Row& each) {
      return std::ranges::any_of(each.names, [&](const std::string& glob) { return matches_glob(glob, small); });
    });
    found->second = static_cast<size_t>(row - rows_.begin());
  }
  return found->second < rows_.size() ? std::string_view(rows_[found->second].group) : kOther;
}

// Where something does not fit, the last star takes one byte more: no recursion, at most glob times text.
bool matches_glob(std::string_view glob, std::string_view text) {
  size_t g = 0, t = 0, star = std::string_view::npos, star_end = 0;
  while (t < text.size()) {
    if (g < glob.size() && glob[g] == '*') {
      star = g++;
      star_end = t;
    } else if (g < glob.size() && (glob[g] == '?' || glob[g] == text[t])) {
      ++g;
      ++t;
    } else if (star != std::string_view::npos) {
      g = star + 1;
      t = ++star_end;
    } else {
      return false;
    }
  }
  return glob.find_first_not_of('*', g) == std::string_view::npos;
}

}  // namespace lamina
