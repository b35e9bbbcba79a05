// The writer of the layerwise JSON; its reader is layerwise_json.cpp.
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "report/load/layerwise_json.h"
#include "report/tree/step_name.h"
#include "report/tree/summarize.h"

namespace lamina {
namespace {

using nlohmann::ordered_json;

constexpr double kMaxWhole = 1e15;  // whole numbers up to here are exact

// JSON has no infinities and no NaN, and a reader that meets a null in their place fails.
double finite(double number) { return std::isfinite(number) ? number : 0; }

// Beside `entry`, in which readers of the format take no further key.
void write_additions(ordered_json&, const SummaryNode&) {}

void write_additions(ordered_json& json, const ModelNode& node) {
  if (!node.path.empty()) json["lamina"] = {{"path", node.path}};
}

template <typename Node>
ordered_json write_nodes(const std::vector<Node>& nodes) {
  ordered_json list = ordered_json::array();
  for (const Node& node : nodes) {
    list.push_back({{"entry", json_entry(node)}, {"children", write_nodes(node.children)}});
    write_additions(list.back(), node);
  }
  return list;
}

// The plotter reads num_running_seqs of every step.
ordered_json complete_metadata(ordered_json metadata) {
  if (!metadata.contains("num_running_seqs")) metadata["num_running_seqs"] = nullptr;
  return metadata;
}

ordered_json write_step(const StepReport& step) {
  return {{"metadata", complete_metadata(*step.metadata)},
          {"summary_stats", write_nodes(step.summary)},
          {"model_stats", write_nodes(step.model)}};
}

// All steps as one: the models one after the other.
ordered_json write_sum(const PhaseReport& phase) {
  StepReport sum;
  sum.summary = phase.summary;
  for (const StepReport& step : phase.steps) sum.model.insert(sum.model.end(), step.model.begin(), step.model.end());
  set_percentages(sum.model);
  return write_step(sum);
}

// The printer and the plotter fail on a step without rows, so these stand in the context.
bool is_empty(const StepReport& step) { return step.summary.empty(); }

bool is_single(const PhaseReport& phase) { return phase.steps.size() == 1 && phase.steps[0].number == 1; }

bool is_any(const StepReport&) { return true; }
bool has_rows(const StepReport& step) { return !is_empty(step); }

// Adds NAME_N for each of the steps that are `wanted`; a phase of one step has just its name, unless that reads as NAME_N
// itself.
void write_steps(ordered_json& into, const PhaseReport& phase, bool always_number, bool (*wanted)(const StepReport&)) {
  bool number = always_number || !is_single(phase) || split_step_name(phase.name);
  for (const StepReport& step : phase.steps) {
    if (wanted(step)) into[number ? phase.name + "_" + std::to_string(step.number) : phase.name] = write_step(step);
  }
}

ordered_json& object_member(ordered_json& object, const char* key) {
  ordered_json& member = object[key];
  if (!member.is_object()) member = ordered_json::object();
  return member;
}

// The plotter puts these in its title, and fails where one is missing. Older files have the engine's arguments flat.
constexpr const char* kEngineArgs[] = {"model", "tensor_parallel_size"};
constexpr const char* kContextKeys[] = {"prompt_len", "batch_size", "num_steps", "complete_num_requests_per_step"};

ordered_json complete_context(const ordered_json& given) {
  ordered_json context = given.is_object() ? given : ordered_json::object();
  ordered_json engine_args = object_member(context, "engine_args");
  for (const char* key : kEngineArgs) {
    if (!engine_args.contains(key)) engine_args[key] = context.value(key, ordered_json());
  }
  context["engine_args"] = std::move(engine_args);
  for (const char* key : kContextKeys) {
    if (!context.contains(key)) context[key] = nullptr;
  }
  return context;
}

// Where the reader would put a phase: prefill, decode, the others.
int rank(const PhaseReport& phase) {
  if (std::ranges::all_of(phase.steps, is_empty)) return 2;
  return phase.name == kPrefill ? 0 : phase.name == kDecode ? 1 : 2;
}

void write_lamina_phases(ordered_json& context, const std::vector<PhaseReport>& phases) {
  ordered_json others = ordered_json::object();
  ordered_json prefill_steps = ordered_json::object();
  ordered_json order = ordered_json::array();
  for (const PhaseReport& phase : phases) {
    order.push_back(phase.name);
    if (rank(phase) == 2) write_steps(others, phase, false, is_any);
    if (rank(phase) == 1) write_steps(others, phase, true, is_empty);
    if (rank(phase) == 0 && !is_single(phase)) write_steps(prefill_steps, phase, true, is_any);
  }
  if (!others.empty()) object_member(context, "lamina")["phases"] = std::move(others);
  if (!prefill_steps.empty()) object_member(context, "lamina")["prefill_steps"] = std::move(prefill_steps);
  if (!std::ranges::is_sorted(phases, {}, rank)) object_member(context, "lamina")["phase_order"] = std::move(order);
}

}  // namespace

nlohmann::ordered_json json_count(double count) {
  count = finite(count);
  bool whole = count == std::floor(count) && std::abs(count) < kMaxWhole;
  return whole ? ordered_json(static_cast<int64_t>(count)) : ordered_json(count);
}

nlohmann::ordered_json json_entry(const SummaryNode& node) {
  ordered_json json = {
      {"name", node.name}, {"cuda_time_us", finite(node.cuda_time_us)}, {"pct_cuda_time", finite(node.pct_cuda_time)}};
  json["invocations"] = json_count(node.invocations);
  return json;
}

nlohmann::ordered_json json_entry(const ModelNode& node) {
  return {{"name", node.name},
          {"cpu_time_us", finite(node.cpu_time_us)},
          {"cuda_time_us", finite(node.cuda_time_us)},
          {"pct_cuda_time", finite(node.pct_cuda_time)},
          {"trace", node.trace}};
}

nlohmann::ordered_json write_layerwise_json(const LayerReport& report) {
  ordered_json document;
  ordered_json& context = document["context"] = complete_context(*report.context);
  write_lamina_phases(context, report.phases);
  auto add = [&](int wanted_rank, auto&& write) {
    for (const PhaseReport& phase : report.phases) {
      if (rank(phase) == wanted_rank) write(phase);
    }
  };
  add(0, [&](const PhaseReport& phase) { document["prefill"] = is_single(phase) ? write_step(phase.steps[0]) : write_sum(phase); });
  add(1, [&](const PhaseReport& phase) { write_steps(document, phase, true, has_rows); });
  return document;
}

}  // namespace lamina
