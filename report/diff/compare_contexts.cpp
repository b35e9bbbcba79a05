// What is different about the circumstances of two reports; see compare_reports.h.
#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "report/diff/compare_reports.h"
#include "report/format.h"

namespace lamina {
namespace {

using nlohmann::ordered_json;
using Fact = std::optional<std::string>;

// What is told where one of the reports does not know a fact.
enum class Unknown { kNothing, kDifference };

// Where a fact stands: newer files have the engine's arguments in an object of their own.
struct FactPlace {
  const char* name;
  std::initializer_list<const char*> pointers;
  Unknown unknown = Unknown::kNothing;
};

const FactPlace kFactPlaces[] = {
    {"model", {"/engine_args/model", "/model"}, Unknown::kDifference},
    {"dtype", {"/engine_args/dtype", "/dtype"}, Unknown::kDifference},
    {"batch_size", {"/batch_size"}, Unknown::kDifference},
    {"quantization", {"/engine_args/quantization", "/quantization"}},
    {"tensor_parallel_size", {"/engine_args/tensor_parallel_size", "/tensor_parallel_size"}},
    {"enforce_eager", {"/engine_args/enforce_eager"}},
    {"allow_cuda_graphs", {"/allow_cuda_graphs"}},
    {"prompt_len", {"/prompt_len"}},
    {"output_len", {"/output_len"}},
    {"torch_version", {"/torch_version"}},
    {"torch_cuda_version", {"/torch_cuda_version"}},
};

Fact fact_at(const ordered_json& context, const FactPlace& place) {
  for (const char* pointer : place.pointers) {
    ordered_json::json_pointer where(pointer);
    if (!context.contains(where) || context.at(where).is_null()) continue;
    const ordered_json& value = context.at(where);
    return value.is_string() ? value.get<std::string>() : value.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
  }
  return std::nullopt;
}

// The names in `[_CudaDeviceProperties(name='NVIDIA H200', …), …]`, as in `2 x NVIDIA H200`; a text of another kind as it is.
Fact devices(const ordered_json& context) {
  Fact text = fact_at(context, {"", {"/cuda_devices"}});
  if (!text || *text == "[]") return std::nullopt;
  constexpr std::string_view kBegin = "name='";
  std::map<std::string, size_t> counts;
  for (size_t at = text->find(kBegin); at != std::string::npos; at = text->find(kBegin, at)) {
    at += kBegin.size();
    ++counts[text->substr(at, text->find('\'', at) - at)];
  }
  std::string names;
  for (const auto& [name, count] : counts) {
    names += names.empty() ? "" : ", ";
    names += count > 1 ? fmt::format("{} x {}", count, name) : name;
  }
  return names.empty() ? text : names;
}

// Of profiles; a layerwise JSON of others does not say.
Fact processes(const ordered_json& context) {
  ordered_json::json_pointer where("/lamina/processes");
  if (!context.contains(where) || !context.at(where).is_array()) return std::nullopt;
  return std::to_string(context.at(where).size());
}

// How many sequences the steps of a phase ran.
Fact sequences(const PhaseReport& phase) {
  std::set<int64_t> counts;
  for (const StepReport& step : phase.steps) {
    auto found = step.metadata->find("num_running_seqs");
    if (found != step.metadata->end() && found->is_number_integer()) counts.insert(found->get<int64_t>());
  }
  if (counts.empty()) return std::nullopt;
  return counts.size() == 1 ? fmt::format("{}", *counts.begin()) : fmt::format("{} to {}", *counts.begin(), *counts.rbegin());
}

}  // namespace

std::vector<ContextDifference> compare_contexts(const LayerReport& before, const LayerReport& after) {
  std::vector<ContextDifference> differences;
  auto add = [&](const std::string& name, Fact a, Fact b, Unknown unknown) {
    bool known = a && b;
    if (a != b && (known || unknown == Unknown::kDifference)) differences.push_back({name, std::move(a), std::move(b)});
  };
  for (const FactPlace& place : kFactPlaces) add(place.name, fact_at(*before.context, place), fact_at(*after.context, place), place.unknown);
  add("GPU", devices(*before.context), devices(*after.context), Unknown::kDifference);
  add("processes", processes(*before.context), processes(*after.context), Unknown::kNothing);
  for (const PhaseReport& phase : before.phases) {
    auto other = std::ranges::find(after.phases, phase.name, &PhaseReport::name);
    if (other != after.phases.end()) add("sequences a step in " + phase.name, sequences(phase), sequences(*other), Unknown::kNothing);
  }
  return differences;
}

}  // namespace lamina
