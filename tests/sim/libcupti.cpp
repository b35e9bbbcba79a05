// libcupti.so.13 of the simulated device: the part of CUPTI that a recorder of launches, graphs and activity uses.
#include <cupti.h>

#include "device.h"
#include "graphs.h"

namespace {

struct DriverCall {
  uint32_t id;
  const char* name;
};
constexpr DriverCall kDriverCalls[] = {
#include "driver_call_names.inc"  // written by CMake from cupti_driver_cbid.h
};

CUpti_SubscriberHandle the_subscriber() {
  static char handle;
  return reinterpret_cast<CUpti_SubscriberHandle>(&handle);
}

}  // namespace

extern "C" {

CUptiResult CUPTIAPI cuptiGetVersion(uint32_t* version) {
  *version = sim::options().cupti_12 ? 26 : 130001;
  return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI cuptiGetResultString(CUptiResult result, const char** text) {
  *text = result == CUPTI_SUCCESS                                    ? "CUPTI_SUCCESS"
          : result == CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED ? "CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED"
                                                                     : "CUPTI_ERROR_OF_THE_SIMULATION";
  return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI cuptiSubscribe(CUpti_SubscriberHandle* subscriber, CUpti_CallbackFunc callback, void* user_data) {
  if (sim::in_forked_child()) sim::misused("cuptiSubscribe in a forked child");
  if (!sim::subscribe(callback, user_data)) return CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED;
  *subscriber = the_subscriber();
  return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI cuptiUnsubscribe(CUpti_SubscriberHandle subscriber) {
  if (subscriber != the_subscriber()) return CUPTI_ERROR_INVALID_PARAMETER;
  sim::unsubscribe();
  return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI cuptiEnableCallback(uint32_t enable, CUpti_SubscriberHandle subscriber,
                                         CUpti_CallbackDomain domain, CUpti_CallbackId id) {
  if (subscriber != the_subscriber()) return CUPTI_ERROR_INVALID_PARAMETER;
  return sim::enable_callback(domain, id, enable != 0) ? CUPTI_SUCCESS : CUPTI_ERROR_INVALID_PARAMETER;
}

CUptiResult CUPTIAPI cuptiGetCallbackName(CUpti_CallbackDomain domain, uint32_t id, const char** name) {
  if (domain != CUPTI_CB_DOMAIN_DRIVER_API) return CUPTI_ERROR_INVALID_PARAMETER;
  for (const DriverCall& call : kDriverCalls) {
    if (call.id != id) continue;
    *name = call.name;
    return CUPTI_SUCCESS;
  }
  return CUPTI_ERROR_INVALID_PARAMETER;
}

CUptiResult CUPTIAPI cuptiActivityRegisterCallbacks(CUpti_BuffersCallbackRequestFunc request,
                                                    CUpti_BuffersCallbackCompleteFunc complete) {
  if (!request || !complete) return CUPTI_ERROR_INVALID_PARAMETER;
  sim::register_buffers(request, complete);
  return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI cuptiActivityEnable(CUpti_ActivityKind kind) {
  if (sim::in_forked_child()) sim::misused("cuptiActivityEnable in a forked child");
  sim::set_activity(kind, true);
  return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI cuptiActivityDisable(CUpti_ActivityKind kind) {
  if (sim::in_forked_child()) sim::misused("cuptiActivityDisable in a forked child");
  sim::set_activity(kind, false);
  return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI cuptiActivityFlushAll(uint32_t flags) {
  if (sim::in_forked_child()) sim::misused("cuptiActivityFlushAll in a forked child");
  sim::InTool::check("cuptiActivityFlushAll inside of a callback");
  sim::flush((flags & CUPTI_ACTIVITY_FLAG_FLUSH_FORCED) != 0);
  return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI cuptiActivityGetNextRecord(uint8_t* buffer, size_t valid_bytes, CUpti_Activity** record) {
  return sim::next_record(buffer, valid_bytes, record);
}

CUptiResult CUPTIAPI cuptiActivityGetNumDroppedRecords(CUcontext, uint32_t, size_t* dropped) {
  *dropped = sim::take_dropped();
  return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI cuptiGetGraphNodeId(CUgraphNode node, uint64_t* id) {
  if (!node) return CUPTI_ERROR_INVALID_PARAMETER;
  *id = sim::node_of(node).id();
  return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI cuptiGetGraphId(CUgraph graph, uint32_t* id) {
  if (!graph) return CUPTI_ERROR_INVALID_PARAMETER;
  *id = sim::graph_of(graph).id;
  return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI cuptiGetGraphExecId(CUgraphExec exec, uint32_t* id) {
  if (!exec) return CUPTI_ERROR_INVALID_PARAMETER;
  *id = sim::exec_of(exec).graph->id;
  return CUPTI_SUCCESS;
}

}  // extern "C"
