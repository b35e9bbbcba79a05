// The tables there are: a row each, for `lamina table` and `lamina csv`.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "report/commands/choice.h"
#include "report/names/kernel_groups.h"
#include "report/render/tables.h"

namespace lamina {

struct TableLook {
  Names names = Names::kCut;
  Paths paths = Paths::kHidden;
  const KernelGroups& groups;
};

struct TableKind {
  const char* name;
  const char* meaning;
  bool of_steps;  // or of whole phases only
  bool (*is_empty)(const Choice&);
  std::string (*text)(const Choice&, const TableLook&);
  std::string (*csv)(const Choice&, const KernelGroups&);
};

std::span<const TableKind> table_kinds();

// One that there is.
const TableKind& table_kind(std::string_view name);

// Throws UsageError when one of a step is asked for that there is not.
void check_choices(const TableKind& kind, const std::vector<Choice>& choices);

// For the options of a command: their names, and what they are.
std::vector<std::string> table_names();
std::string table_meanings();

}  // namespace lamina
