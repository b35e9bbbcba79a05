#include "inject/graph_callbacks.h"

#include <cstring>

#include "inject/call_stacks.h"
#include "inject/recorder.h"

namespace lamina {

using namespace format;

namespace {

constexpr CUpti_CallbackId kNodeUpdated = 22;  // headers before CUDA 13.0 do not have it

constexpr CUpti_CallbackId kGraphCallbacks[] = {
    CUPTI_CBID_RESOURCE_GRAPH_CREATED,
    CUPTI_CBID_RESOURCE_GRAPH_CLONED,
    CUPTI_CBID_RESOURCE_GRAPH_DESTROY_STARTING,
    CUPTI_CBID_RESOURCE_GRAPHNODE_CREATED,
    CUPTI_CBID_RESOURCE_GRAPHNODE_CLONED,
    CUPTI_CBID_RESOURCE_GRAPHEXEC_CREATED,
    CUPTI_CBID_RESOURCE_GRAPHEXEC_DESTROY_STARTING,
    kNodeUpdated,
};

uint64_t node_id(Cupti& cupti, CUgraphNode node) {
  uint64_t id = 0;
  if (!node || cupti.graph_node_id(node, &id) != CUPTI_SUCCESS) return 0;
  return id;
}

uint32_t graph_id(Cupti& cupti, CUgraph graph) {
  uint32_t id = 0;
  if (!graph || cupti.graph_id(graph, &id) != CUPTI_SUCCESS) return 0;
  return id;
}

uint32_t exec_id(Cupti& cupti, CUgraphExec exec) {
  uint32_t id = 0;
  if (!exec || !cupti.graph_exec_id || cupti.graph_exec_id(exec, &id) != CUPTI_SUCCESS) return 0;
  return id;
}

// The kernel of the launch that is being captured; nodes added by hand have none.
uint32_t kernel_name(Recorder& recorder, const ThreadLog& log) {
  return log.call.symbol ? recorder.definitions.kernel_name(log.call.symbol)->id : 0;
}

template <typename Record>
void append_graph(Recorder& recorder, ThreadLog& log, RecordKind kind, uint32_t id, Record record, uint32_t other, uint8_t flags = 0) {
  record.header.sequence = recorder.graph_records.fetch_add(1);
  record.header.graph = other;
  log.sync_step();
  log.append(kind, flags, id, record);
}

}  // namespace

void enable_graph_callbacks(Cupti& cupti) {
  for (CUpti_CallbackId id : kGraphCallbacks) cupti.enable_callback(CUPTI_CB_DOMAIN_RESOURCE, id);
}

void on_graph_event(Recorder& recorder, ThreadLog& log, CUpti_CallbackId id, const CUpti_GraphData& graph) {
  Cupti& cupti = recorder.cupti;
  auto append = [&]<typename Record>(RecordKind kind, uint32_t record_id, Record record, uint32_t other = 0, uint8_t flags = 0) {
    append_graph(recorder, log, kind, record_id, record, other, flags);
  };
  switch (id) {
    case CUPTI_CBID_RESOURCE_GRAPH_CREATED:
      return append(RecordKind::kGraphCreated, graph_id(cupti, graph.graph), GraphCreatedRecord{});
    case CUPTI_CBID_RESOURCE_GRAPH_CLONED:
      return append(RecordKind::kGraphCreated, graph_id(cupti, graph.graph), GraphCreatedRecord{},
                    graph_id(cupti, graph.originalGraph), kGraphCloned);
    case CUPTI_CBID_RESOURCE_GRAPH_DESTROY_STARTING:
      return append(RecordKind::kGraphDestroyed, graph_id(cupti, graph.graph), GraphDestroyedRecord{});
    case CUPTI_CBID_RESOURCE_GRAPHNODE_CREATED:
      log.call.captured = true;
      log.sync_step();
      note_call_stack(recorder, log, log.call.symbol);
      return append(RecordKind::kGraphNode, log.current_context(), GraphNodeRecord{{}, node_id(cupti, graph.node)},
                    kernel_name(recorder, log));
    case CUPTI_CBID_RESOURCE_GRAPHNODE_CLONED:
      return append(RecordKind::kGraphNodeCloned, 0,
                    GraphNodeClonedRecord{{}, node_id(cupti, graph.node), node_id(cupti, graph.originalNode)});
    case CUPTI_CBID_RESOURCE_GRAPHEXEC_CREATED:
      return append(RecordKind::kGraphExec, exec_id(cupti, graph.graphExec), GraphExecRecord{}, graph_id(cupti, graph.graph));
    case CUPTI_CBID_RESOURCE_GRAPHEXEC_DESTROY_STARTING:
      return append(RecordKind::kGraphExecDestroyed, exec_id(cupti, graph.graphExec), GraphDestroyedRecord{});
    case kNodeUpdated:  // `node` is the new one, `originalNode` that of the executable graph
      return append(RecordKind::kGraphNodeUpdated, exec_id(cupti, graph.graphExec),
                    GraphNodeUpdatedRecord{{}, node_id(cupti, graph.originalNode), node_id(cupti, graph.node)});
    default: return;
  }
}

GraphCall graph_call(std::string_view function) {
  auto is_set_params = [&] { return function.find("NodeSetParams") != std::string_view::npos; };
  if (function.starts_with("cuGraphExecUpdate")) return GraphCall::kExecUpdate;
  if (function.starts_with("cuGraphExec") && is_set_params()) return GraphCall::kExecNodeSetParams;
  if (function.starts_with("cuGraph") && is_set_params()) return GraphCall::kNodeSetParams;
  return GraphCall::kNone;
}

// The parameters of all these calls begin with (exec, graph), (exec, node) or (node).
void on_graph_call(Recorder& recorder, ThreadLog& log, GraphCall kind, const CUpti_CallbackData& call) {
  struct {
    void* first;
    void* second;
  } parameters{};
  if (!call.functionParams) return;
  memcpy(&parameters, call.functionParams, kind == GraphCall::kNodeSetParams ? sizeof(void*) : sizeof(parameters));
  Cupti& cupti = recorder.cupti;
  if (kind == GraphCall::kExecUpdate) {
    append_graph(recorder, log, RecordKind::kGraphExecUpdated, exec_id(cupti, static_cast<CUgraphExec>(parameters.first)),
                 GraphExecUpdatedRecord{}, graph_id(cupti, static_cast<CUgraph>(parameters.second)));
    return;
  }
  bool in_exec = kind == GraphCall::kExecNodeSetParams;
  auto node = static_cast<CUgraphNode>(in_exec ? parameters.second : parameters.first);
  log.sync_step();
  note_call_stack(recorder, log, nullptr);
  uint32_t exec = in_exec ? exec_id(cupti, static_cast<CUgraphExec>(parameters.first)) : 0;
  append_graph(recorder, log, RecordKind::kGraphNodeSetParams, log.current_context(),
               GraphNodeSetParamsRecord{{}, node_id(cupti, node)}, exec);
}

}  // namespace lamina
