#include "report/render/raw_json.h"

#include <nlohmann/json.hpp>

#include "report/format.h"

namespace lamina {

using namespace format;
using nlohmann::ordered_json;

namespace {

std::string node_text(uint64_t node) { return fmt::format("{}:{}", node >> 32, node & 0xffffffffu); }

// How one kind of record is shown: its name and a function that adds its fields.
struct Description {
  RecordKind kind;
  const char* name;
  bool (*fields)(const RecordView&, const ProcessDefinitions&, ordered_json&);
};

// A function for Description from one that takes the record as T.
template <typename T, void (*kFields)(const T&, const RecordView&, const ProcessDefinitions&, ordered_json&)>
bool with(const RecordView& record, const ProcessDefinitions& definitions, ordered_json& json) {
  auto whole = record.as<T>();
  if (whole) kFields(*whole, record, definitions, json);
  return whole.has_value();
}

void string_fields(const StringRecord& r, const RecordView& view, const ProcessDefinitions& definitions, ordered_json& json) {
  json["id"] = view.header().id;
  auto text = view.behind<StringRecord>(r.size);
  json["text"] = std::string(text.begin(), text.end());
  if (r.domain) json["domain"] = definitions.text(r.domain);
}

void context_fields(const ContextRecord& r, const RecordView& view, const ProcessDefinitions& definitions, ordered_json& json) {
  json["id"] = view.header().id;
  json["parent"] = r.parent;
  json["name"] = definitions.text(r.name);
  if (view.header().flags == static_cast<uint8_t>(ContextKind::kPhase)) json["phase"] = true;
}

void code_fields(const CodeRecord& r, const RecordView& view, const ProcessDefinitions& definitions, ordered_json& json) {
  json["id"] = view.header().id;
  auto add = [&](const char* key, uint32_t string) {
    if (string != 0) json[key] = definitions.text(string);
  };
  add("module", r.module);
  add("build_id", r.build_id);
  if (r.language == CodeLanguage::kPython) {
    json["language"] = "Python";
  } else {
    json["offset"] = r.offset;
  }
  add("function", r.function);
  add("file", r.file);
  if (r.line != 0) json["line"] = r.line;
}

void stack_fields(const StackRecord& r, const RecordView& view, const ProcessDefinitions& definitions, ordered_json& json) {
  json["id"] = view.header().id;
  json["parent"] = r.parent;
  json["code"] = r.code;
  if (r.kernel != 0) json["kernel"] = definitions.text(r.kernel);
}

bool call_stack_fields(const RecordView& view, const ProcessDefinitions&, ordered_json& json) {
  json["stack"] = view.header().id;
  return true;
}

void step_fields(const StepRecord& r, const RecordView& view, const ProcessDefinitions& definitions, ordered_json& json) {
  json["id"] = view.header().id;
  json["phase"] = definitions.text(r.phase);
  if (r.message != 0) json["message"] = definitions.text(r.message);
  json["collected"] = !(view.header().flags & kStepNotCollected);
  if (view.header().flags & kStepFound) json["found"] = true;
  json["time"] = r.time;
}

void step_end_fields(const StepEndRecord& r, const RecordView& view, const ProcessDefinitions&, ordered_json& json) {
  json["id"] = view.header().id;
  json["time"] = r.time;
}

void property_fields(const PropertyRecord& r, const RecordView& view, const ProcessDefinitions&, ordered_json& json) {
  auto text = view.behind<PropertyRecord>(r.size);
  size_t key = std::min<size_t>(r.key_size, text.size());
  json["key"] = std::string(text.begin(), text.begin() + static_cast<long>(key));
  if (key < text.size()) json["value"] = std::string(text.begin() + static_cast<long>(key) + 1, text.end());
}

void clock_pair_fields(const ClockPairRecord& r, const RecordView&, const ProcessDefinitions&, ordered_json& json) {
  json["host_time"] = r.host_time;
  json["realtime"] = r.realtime;
}

void loss_fields(const LossRecord& r, const RecordView& view, const ProcessDefinitions&, ordered_json& json) {
  json["loss"] = view.header().id;
  json["count"] = r.count;
}

void thread_name_fields(const ThreadNameRecord& r, const RecordView& view, const ProcessDefinitions& definitions, ordered_json& json) {
  json["thread"] = view.header().id;
  json["tid"] = r.tid;
  json["name"] = definitions.text(r.name);
}

void thread_state_fields(const ThreadStateRecord& r, const RecordView& view, const ProcessDefinitions&, ordered_json& json) {
  json["step"] = r.step;
  json["calls"] = r.calls;
  json["open"] = view.header().id;
}

bool step_change_fields(const RecordView& view, const ProcessDefinitions&, ordered_json& json) {
  json["step"] = view.header().id;
  return true;
}

void push_fields(const PushRecord& r, const RecordView& view, const ProcessDefinitions& definitions, ordered_json& json) {
  json["context"] = view.header().id;
  if (auto* context = definitions.context(view.header().id)) json["name"] = definitions.text(context->name);
  if (view.header().flags & kPushStartEnd) json["start_end"] = true;
  json["time"] = r.time;
}

void pop_fields(const PopRecord& r, const RecordView& view, const ProcessDefinitions&, ordered_json& json) {
  json["depth"] = view.header().id;
  json["time"] = r.time;
}

void mark_fields(const MarkRecord& r, const RecordView& view, const ProcessDefinitions& definitions, ordered_json& json) {
  json["text"] = definitions.text(view.header().id);
  json["time"] = r.time;
}

void launch_fields(const LaunchRecord& r, const RecordView& view, const ProcessDefinitions&, ordered_json& json) {
  constexpr const char* kKinds[] = {"kernel", "memcpy", "memset", "graph"};
  uint8_t flags = view.header().flags;
  json["of"] = kKinds[flags & kLaunchKindMask];
  json["correlation"] = view.header().id;
  json["context"] = r.context;
  if (r.graph_exec) json["graph_exec"] = r.graph_exec;
  if (flags & kLaunchCaptured) json["captured"] = true;
  if (flags & kLaunchFailed) json["failed"] = true;
  if (flags & kLaunchNotCollected) json["not_collected"] = true;
}

void graph_fields(const GraphCreatedRecord& r, const RecordView& view, const ProcessDefinitions&, ordered_json& json) {
  json["graph"] = view.header().id;
  if (view.header().flags & kGraphCloned) json["original"] = r.header.graph;
}

void graph_node_fields(const GraphNodeRecord& r, const RecordView& view, const ProcessDefinitions& definitions, ordered_json& json) {
  json["node"] = node_text(r.node);
  json["context"] = view.header().id;
  if (r.header.graph) json["kernel"] = definitions.text(r.header.graph);
}

void node_cloned_fields(const GraphNodeClonedRecord& r, const RecordView&, const ProcessDefinitions&, ordered_json& json) {
  json["node"] = node_text(r.node);
  json["original"] = node_text(r.original);
}

void graph_exec_fields(const GraphExecRecord& r, const RecordView& view, const ProcessDefinitions&, ordered_json& json) {
  json["graph_exec"] = view.header().id;
  json["graph"] = r.header.graph;
}

bool destroyed_fields(const RecordView& view, const ProcessDefinitions&, ordered_json& json) {
  json["id"] = view.header().id;
  return true;
}

void exec_updated_fields(const GraphExecUpdatedRecord& r, const RecordView& view, const ProcessDefinitions&, ordered_json& json) {
  json["graph_exec"] = view.header().id;
  json["graph"] = r.header.graph;
}

void node_updated_fields(const GraphNodeUpdatedRecord& r, const RecordView& view, const ProcessDefinitions&, ordered_json& json) {
  json["graph_exec"] = view.header().id;
  json["node"] = node_text(r.node);
  json["source"] = node_text(r.source);
}

void set_params_fields(const GraphNodeSetParamsRecord& r, const RecordView& view, const ProcessDefinitions&, ordered_json& json) {
  json["node"] = node_text(r.node);
  json["context"] = view.header().id;
  if (r.header.graph) json["graph_exec"] = r.header.graph;
}

void trailer_fields(const TrailerRecord& r, const RecordView&, const ProcessDefinitions&, ordered_json& json) {
  json["activity_records"] = r.activity_records;
  json["chunks"] = r.chunks;
  json["end_time"] = r.end_time;
}

constexpr Description kDescriptions[] = {
    {RecordKind::kString, "string", with<StringRecord, string_fields>},
    {RecordKind::kContext, "context", with<ContextRecord, context_fields>},
    {RecordKind::kStep, "step", with<StepRecord, step_fields>},
    {RecordKind::kStepEnd, "step_end", with<StepEndRecord, step_end_fields>},
    {RecordKind::kProperty, "property", with<PropertyRecord, property_fields>},
    {RecordKind::kClockPair, "clock_pair", with<ClockPairRecord, clock_pair_fields>},
    {RecordKind::kLoss, "loss", with<LossRecord, loss_fields>},
    {RecordKind::kThreadName, "thread", with<ThreadNameRecord, thread_name_fields>},
    {RecordKind::kCode, "code", with<CodeRecord, code_fields>},
    {RecordKind::kStack, "stack", with<StackRecord, stack_fields>},
    {RecordKind::kCallStack, "call_stack", call_stack_fields},
    {RecordKind::kThreadState, "thread_state", with<ThreadStateRecord, thread_state_fields>},
    {RecordKind::kStepChange, "step_change", step_change_fields},
    {RecordKind::kPush, "push", with<PushRecord, push_fields>},
    {RecordKind::kPop, "pop", with<PopRecord, pop_fields>},
    {RecordKind::kMark, "mark", with<MarkRecord, mark_fields>},
    {RecordKind::kLaunch, "launch", with<LaunchRecord, launch_fields>},
    {RecordKind::kGraphCreated, "graph", with<GraphCreatedRecord, graph_fields>},
    {RecordKind::kGraphNode, "graph_node", with<GraphNodeRecord, graph_node_fields>},
    {RecordKind::kGraphNodeCloned, "graph_node_cloned", with<GraphNodeClonedRecord, node_cloned_fields>},
    {RecordKind::kGraphExec, "graph_exec", with<GraphExecRecord, graph_exec_fields>},
    {RecordKind::kGraphDestroyed, "graph_destroyed", destroyed_fields},
    {RecordKind::kGraphExecDestroyed, "graph_exec_destroyed", destroyed_fields},
    {RecordKind::kGraphNodeUpdated, "graph_node_updated", with<GraphNodeUpdatedRecord, node_updated_fields>},
    {RecordKind::kGraphExecUpdated, "graph_exec_updated", with<GraphExecUpdatedRecord, exec_updated_fields>},
    {RecordKind::kGraphNodeSetParams, "graph_node_set_params", with<GraphNodeSetParamsRecord, set_params_fields>},
    {RecordKind::kTrailer, "trailer", with<TrailerRecord, trailer_fields>},
};

}  // namespace

ordered_json raw_json(const RecordView& record, const ProcessDefinitions& definitions) {
  ordered_json json;
  for (const Description& description : kDescriptions) {
    if (description.kind != record.header().kind) continue;
    json["record"] = description.name;
    if (!description.fields(record, definitions, json)) json["error"] = "record too short";
    return json;
  }
  json["record"] = "unknown";
  json["kind"] = static_cast<int>(record.header().kind);
  json["size"] = record.header().units * 8;
  return json;
}

}  // namespace lamina
