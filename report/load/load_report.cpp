#include "report/load/load_report.h"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <vector>

#include "report/errors.h"
#include "report/format.h"
#include "report/load/layerwise_json.h"
#include "report/load/profile.h"
#include "report/load/report_context.h"
#include "report/output.h"
#include "report/tree/step_name.h"

namespace lamina {
namespace {

constexpr size_t kMaxJsonBytes = size_t{2} << 30;
constexpr size_t kMaxShownModelNodes = size_t{1} << 20;  // of the few steps that people look at call by call

bool is_profile(const std::string& path) {
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) return true;
  if (std::filesystem::path(path).extension() == format::kFileSuffix) return true;
  if (!std::filesystem::is_regular_file(path, error)) return false;  // what is read from a pipe is gone
  std::ifstream file(path, std::ios::binary);
  char magic[sizeof(format::kMagic)] = {};
  file.read(magic, sizeof(magic));
  return memcmp(magic, format::kMagic, sizeof(magic)) == 0;
}

std::string read_text(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw InputError(fmt::format("{}: {}", path, strerror(errno)));
  std::string text;
  std::vector<char> buffer(1u << 20);
  while (file.read(buffer.data(), static_cast<std::streamsize>(buffer.size())) || file.gcount() > 0) {
    text.append(buffer.data(), static_cast<size_t>(file.gcount()));
    if (text.size() > kMaxJsonBytes) throw InputError(path + ": too large for a layerwise JSON");
  }
  return text;
}

}  // namespace

LayerReport load_report(const std::string& path, const LoadOptions& options, std::vector<Process>* processes_read) {
  std::error_code error;
  if (!std::filesystem::exists(path, error)) throw InputError(path + ": no such profile");
  if (!is_profile(path)) return read_layerwise_json(read_text(path), path);
  LayerTree::Options tree_options;
  auto wanted = options.phase ? split_step_name(*options.phase) : std::nullopt;
  bool models = options.steps == StepDetail::kModels;
  tree_options.details = [&](std::string_view phase, uint32_t step) {
    return models || (wanted && wanted->phase == phase && wanted->number == step);
  };
  tree_options.first_model = options.steps != StepDetail::kNone;
  tree_options.gpu_time = options.gpu_time || options.steps >= StepDetail::kSummaries;
  tree_options.step_summaries = options.steps == StepDetail::kSummaries;
  if (!models) tree_options.max_model_nodes = kMaxShownModelNodes;
  LayerTree tree(std::move(tree_options));
  std::vector<Process> processes = read_profile(path, tree, options.rank, {}, options.stacks);
  if (options.tell_problems) tell_problems(processes);
  LayerReport report;
  *report.context = report_context(processes);
  tree.finish(report);
  if (processes_read) *processes_read = std::move(processes);
  return report;
}

}  // namespace lamina
