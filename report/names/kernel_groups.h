// Which kind of work a kernel does: gemm, attention, norm, elementwise, memory, communication, quantisation, other.
// The rules are in kernel_groups.json; users may put a file of their own before them.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace lamina {

class KernelGroups {
 public:
  KernelGroups();  // the built-in ones

  // Those of a file, before the built-in ones: an array of rows {"group": NAME, "names": [GLOB...]}. Throws InputError with
  // the file and the place in it.
  static KernelGroups from_file(const std::string& path);

  // `name` as a report has it: a demangled kernel, `Memcpy …` or `Memset …`. The group of the first row with a glob that
  // is like the whole name, capital or small; `other` where there is none. Remembers what it was asked.
  std::string_view group_of(std::string_view name) const;

 private:
  struct Row {
    std::string group;
    std::vector<std::string> names;  // globs in small letters
  };
  explicit KernelGroups(std::vector<Row> rows) : rows_(std::move(rows)) {}
  static std::vector<Row> parse(const std::string& text, const std::string& file_name);
  static const std::vector<Row>& built_in();

  std::vector<Row> rows_;
  mutable std::unordered_map<std::string, size_t> known_;  // the row, or the number of rows
};

// Whether all of `text` is like the glob: `*` is any text, `?` any byte.
bool matches_glob(std::string_view glob, std::string_view text);

}  // namespace lamina
