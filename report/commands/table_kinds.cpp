#include "report/commands/table_kinds.h"

#include <algorithm>

#include "report/errors.h"
#include "report/format.h"
#include "report/render/csv.h"

namespace lamina {
namespace {

// Of whole phases only.
const std::vector<SummaryNode>& libraries(const Choice& choice) {
  static const std::vector<SummaryNode> kNone;
  return choice.step ? kNone : choice.phase->libraries;
}

std::vector<KernelRow> kernels(const Choice& choice) { return choice.step ? kernel_rows(*choice.step) : kernel_rows(*choice.phase); }

constexpr TableKind kTables[] = {
    {"summary", "equal layers merged", true, [](const Choice& choice) { return choice.summary().empty(); },
     [](const Choice& choice, const TableLook& look) { return summary_table(choice.summary(), look.names); },
     [](const Choice& choice, const KernelGroups&) { return summary_csv(choice.summary()); }},
    {"model", "call by call", true, [](const Choice& choice) { return choice.model().empty(); },
     [](const Choice& choice, const TableLook& look) { return model_table(choice.model(), look.names, look.paths); },
     [](const Choice& choice, const KernelGroups&) { return model_csv(choice.model()); }},
    {"kernel", "each kernel once", true, [](const Choice& choice) { return kernels(choice).empty(); },
     [](const Choice& choice, const TableLook& look) { return kernel_table(kernels(choice), look.groups, look.names); },
     [](const Choice& choice, const KernelGroups& groups) { return kernel_csv(kernels(choice), groups); }},
    {"library", "which library launches what", false, [](const Choice& choice) { return libraries(choice).empty(); },
     [](const Choice& choice, const TableLook& look) { return summary_table(libraries(choice), look.names); },
     [](const Choice& choice, const KernelGroups&) { return summary_csv(libraries(choice)); }},
};

}  // namespace

std::span<const TableKind> table_kinds() { return kTables; }

const TableKind& table_kind(std::string_view name) {
  return *std::ranges::find(kTables, name, [](const TableKind& kind) { return std::string_view(kind.name); });
}

void check_choices(const TableKind& kind, const std::vector<Choice>& choices) {
  if (kind.of_steps || choices.empty() || !choices[0].step) return;
  throw UsageError(fmt::format("--table {}: is of whole phases; give one to --phase", kind.name));
}

std::vector<std::string> table_names() {
  std::vector<std::string> names;
  for (const TableKind& kind : kTables) names.emplace_back(kind.name);
  return names;
}

std::string table_meanings() {
  std::string text;
  for (const TableKind& kind : kTables) text += fmt::format("{}{}: {}", text.empty() ? "" : "; ", kind.name, kind.meaning);
  return text;
}

}  // namespace lamina
