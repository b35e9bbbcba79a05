#include "inject/graph_callbacks.h"

#include <cstring>

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
  return log.call.symbol ? recorder.definitions.string(log.call.symbol)->id : 0;
}

}  // namespace

void enable_graph_callbacks(Cupti& cupti) {
  for (CUpti_CallbackId id : kGraphCallbacks) cupti.enable_callback(CUPTI_CB_DOMAIN_RESOURCE, id);
}

void on_graph_event(Recorder& recorder, ThreadLog& log, CUpti_CallbackId id, const CUpti_GraphData& graph) {
  Cupti& cupti = recorder.cupti;
  switch (id) {
    case CUPTI_CBID_RESOURCE_GRAPH_CREATED:
      log.append(RecordKind::kGraphCreated, 0, graph_id(cupti, graph.graph), GraphCreatedRecord{});
      break;
    case CUPTI_CBID_RESOURCE_GRAPH_CLONED:
      log.append(RecordKind::kGraphCreated, kGraphCloned, graph_id(cupti, graph.graph),
                 GraphCreatedRecord{{}, graph_id(cupti, graph.originalGraph), 0});
      break;
    case CUPTI_CBID_RESOURCE_GRAPH_DESTROY_STARTING:
      log.append(RecordKind::kGraphDestroyed, 0, graph_id(cupti, graph.graph), GraphDestroyedRecord{});
      break;
    case CUPTI_CBID_RESOURCE_GRAPHNODE_CREATED:
      log.append(RecordKind::kGraphNode, 0, log.current_context(),
                 GraphNodeRecord{{}, node_id(cupti, graph.node), kernel_name(recorder, log), 0});
      log.call.captured = true;
      break;
    case CUPTI_CBID_RESOURCE_GRAPHNODE_CLONED:
      log.append(RecordKind::kGraphNodeCloned, 0, 0,
                 GraphNodeClonedRecord{{}, node_id(cupti, graph.node), node_id(cupti, graph.originalNode)});
      break;
    case CUPTI_CBID_RESOURCE_GRAPHEXEC_CREATED:
      log.append(RecordKind::kGraphExec, 0, exec_id(cupti, graph.graphExec), GraphExecRecord{{}, graph_id(cupti, graph.graph), 0});
      break;
    case CUPTI_CBID_RESOURCE_GRAPHEXEC_DESTROY_STARTING:
      log.append(RecordKind::kGraphExecDestroyed, 0, exec_id(cupti, graph.graphExec), GraphDestroyedRecord{});
      break;
    case kNodeUpdated:  // `node` is the new one, `originalNode` that of the executable graph
      log.append(RecordKind::kGraphNodeUpdated, 0, exec_id(cupti, graph.graphExec),
                 GraphNodeUpdatedRecord{{}, node_id(cupti, graph.originalNode), node_id(cupti, graph.node)});
      break;
    default: break;
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
    log.append(RecordKind::kGraphExecUpdated, 0, exec_id(cupti, static_cast<CUgraphExec>(parameters.first)),
               GraphExecUpdatedRecord{{}, graph_id(cupti, static_cast<CUgraph>(parameters.second)), 0});
    return;
  }
  bool in_exec = kind == GraphCall::kExecNodeSetParams;
  auto node = static_cast<CUgraphNode>(in_exec ? parameters.second : parameters.first);
  uint32_t exec = in_exec ? exec_id(cupti, static_cast<CUgraphExec>(parameters.first)) : 0;
  log.append(RecordKind::kGraphNodeSetParams, 0, log.current_context(),
             GraphNodeSetParamsRecord{{}, node_id(cupti, node), exec, 0});
}

}  // namespace lamina
