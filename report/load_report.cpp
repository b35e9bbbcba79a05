#include "report/load_report.h"

#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "report/errors.h"
#include "report/layerwise_json.h"
#include "report/output.h"
#include "report/profile.h"
#include "report/report_context.h"
#include "report/step_name.h"

namespace lamina {
namespace {

bool is_profile(const std::string& path) {
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) return true;
  std::ifstream file(path, std::ios::binary);
  char magic[sizeof(format::kMagic)] = {};
  file.read(magic, sizeof(magic));
  bool by_content = memcmp(magic, format::kMagic, sizeof(magic)) == 0;
  return by_content || std::filesystem::path(path).extension() == format::kFileSuffix;
}

std::string read_text(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw InputError(fmt::format("{}: {}", path, strerror(errno)));
  return {std::istreambuf_iterator<char>(file), {}};
}

void tell_problems(const Process& process) {
  if (!process.damage.empty()) {
    const Damage& first = process.damage.front();
    print_message(fmt::format("{}: {} at offset {}: what stands there is missing from the report", process.path, first.what, first.offset));
  } else if (!process.ended) {
    print_message(fmt::format("{}: the end is missing (the program was killed or is still running): see `lamina info`", process.path));
  }
}

}  // namespace

LayerReport load_report(const std::string& path, const LoadOptions& options) {
  std::error_code error;
  if (!std::filesystem::exists(path, error)) throw InputError(path + ": no such profile");
  if (!is_profile(path)) return read_layerwise_json(read_text(path), path);
  LayerTree::Options tree_options;
  auto wanted = options.phase ? split_step_name(*options.phase) : std::nullopt;
  tree_options.details = [&](std::string_view phase, uint32_t step) {
    return options.every_step || (wanted && wanted->phase == phase && wanted->number == step);
  };
  LayerTree tree(std::move(tree_options));
  std::vector<Process> processes = read_profile(path, tree, options.rank);
  LayerReport report;
  report.context = report_context(processes);
  tree.finish(report);
  for (const Process& process : processes) tell_problems(process);
  return report;
}

}  // namespace lamina
