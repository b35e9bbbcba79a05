// The writer of the layerwise JSON; its reader is layerwise_json.cpp.
#include <algorithm>
#include <cmath>

#include "report/load/layerwise_json.h"
#include "report/tree/step_name.h"
#include "report/tree/summarize.h"

namespace lamina {
namespace {

using nlohmann::ordered_json;

constexpr std::string_view kPrefill = "prefill";
constexpr std::string_view kDecode = "decode";

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

ordered_json write_step(const StepReport& step) {
  return {{"metadata", step.metadata},
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

bool is_single(const PhaseReport& phase) { return phase.steps.size() == 1 && phase.steps[0].number == 1; }

// Adds NAME_N for each step; a phase of one step has just its name, unless that reads as NAME_N itself.
void write_steps(ordered_json& into, const PhaseReport& phase, bool always_number) {
  bool number = always_number || !is_single(phase) || split_step_name(phase.name);
  for (const StepReport& step : phase.steps) {
    into[number ? phase.name + "_" + std::to_string(step.number) : phase.name] = write_step(step);
  }
}

ordered_json& object_member(ordered_json& object, const char* key) {
  ordered_json& member = object[key];
  if (!member.is_object()) member = ordered_json::object();
  return member;
}

// Readers of the format insist on some keys; older files have the model flat.
ordered_json complete_context(const ordered_json& given) {
  ordered_json context = given.is_object() ? given : ordered_json::object();
  ordered_json model = context.contains("model") ? context["model"] : nullptr;
  ordered_json& engine_args = object_member(context, "engine_args");
  if (!engine_args.contains("model")) engine_args["model"] = model;
  if (!context.contains("batch_size")) context["batch_size"] = nullptr;
  return context;
}

// Where the reader would put a phase: prefill, decode, the others.
int rank(const PhaseReport& phase) { return phase.name == kPrefill ? 0 : phase.name == kDecode ? 1 : 2; }

void write_lamina_phases(ordered_json& context, const std::vector<PhaseReport>& phases) {
  ordered_json others = ordered_json::object();
  ordered_json prefill_steps = ordered_json::object();
  ordered_json order = ordered_json::array();
  for (const PhaseReport& phase : phases) {
    order.push_back(phase.name);
    if (rank(phase) == 2) write_steps(others, phase, false);
    if (phase.name == kPrefill && !is_single(phase)) write_steps(prefill_steps, phase, true);
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
  ordered_json& context = document["context"] = complete_context(report.context);
  write_lamina_phases(context, report.phases);
  auto add = [&](std::string_view name, auto&& write) {
    for (const PhaseReport& phase : report.phases) {
      if (phase.name == name && !phase.steps.empty()) write(phase);
    }
  };
  add(kPrefill, [&](const PhaseReport& phase) {
    document["prefill"] = is_single(phase) ? write_step(phase.steps[0]) : write_sum(phase);
  });
  add(kDecode, [&](const PhaseReport& phase) { write_steps(document, phase, true); });
  return document;
}

}  // namespace lamina
