#include "inject/callbacks.h"

#include <cstring>
#include <string_view>

#include "inject/busy.h"
#include "inject/call_stacks.h"
#include "inject/graph_callbacks.h"
#include "inject/log.h"
#include "inject/ranges.h"
#include "inject/recorder.h"

namespace lamina {

using namespace format;

namespace {

// What a driver call means, by callback id. Filled once, before the callbacks are enabled.
enum class CallKind : uint8_t { kIgnored, kKernel, kMemcpy, kMemset, kGraphLaunch, kGraphCall, kProfilerStart, kProfilerStop };

constexpr uint32_t kMaxDriverCallbacks = 4096;
CallKind call_kinds[kMaxDriverCallbacks];
GraphCall graph_calls[kMaxDriverCallbacks];

struct NameRule {
  std::string_view prefix;
  CallKind kind;
};
// The first that matches counts.
constexpr NameRule kNameRules[] = {
    {"cuLaunchHostFunc", CallKind::kIgnored},
    {"cuLaunch", CallKind::kKernel},
    {"cuGraphLaunch", CallKind::kGraphLaunch},
    {"cuMemcpy", CallKind::kMemcpy},
    {"cuMemset", CallKind::kMemset},
    {"cuProfilerStart", CallKind::kProfilerStart},
    {"cuProfilerStop", CallKind::kProfilerStop},
};

CallKind kind_of(std::string_view name) {
  for (const NameRule& rule : kNameRules) {
    if (name.starts_with(rule.prefix)) return rule.kind;
  }
  return graph_call(name) != GraphCall::kNone ? CallKind::kGraphCall : CallKind::kIgnored;
}

// Launches come first, in the order of LaunchKind.
LaunchKind launch_kind(CallKind kind) {
  return static_cast<LaunchKind>(static_cast<int>(kind) - static_cast<int>(CallKind::kKernel));
}
static_assert(static_cast<int>(LaunchKind::kGraph) == static_cast<int>(CallKind::kGraphLaunch) - static_cast<int>(CallKind::kKernel));

// cuGraphLaunch and its _ptsz variant: the first parameter is the executable graph.
[[gnu::noinline]] uint32_t launched_graph(Recorder& recorder, const CUpti_CallbackData& call) {
  uint32_t id = 0;
  if (!recorder.cupti.graph_exec_id || !call.functionParams) return 0;
  auto exec = *static_cast<const CUgraphExec*>(call.functionParams);
  if (recorder.cupti.graph_exec_id(exec, &id) != CUPTI_SUCCESS) return 0;
  return id;
}

bool failed(const CUpti_CallbackData& call) {
  return call.functionReturnValue && *static_cast<const CUresult*>(call.functionReturnValue) != CUDA_SUCCESS;
}

// Written when the call returns: by then it is known whether it failed or was captured.
void record_launch(Recorder& recorder, ThreadLog& log, CallKind kind, const CUpti_CallbackData& call) {
  LaunchRecord record{{}, log.current_context(), 0, 0, 0};
  auto flags = static_cast<uint8_t>(launch_kind(kind));
  if (kind == CallKind::kGraphLaunch) {
    record.graph_exec = launched_graph(recorder, call);
    record.graph_sequence = recorder.graph_records.load(std::memory_order_relaxed);
  }
  if (log.call.captured) flags |= kLaunchCaptured;
  if (failed(call)) flags |= kLaunchFailed;
  if (!log.call.collected) flags |= kLaunchNotCollected;
  log.sync_step();
  bool is_seen = (flags & (kLaunchCaptured | kLaunchFailed | kLaunchNotCollected)) == 0;
  if (is_seen) note_call_stack(recorder, log, log.call.symbol);
  log.append(RecordKind::kLaunch, flags, call.correlationId, record);
}

// Calls `record` with the thread's stream, and the stack as it is now.
template <typename Function>
void with_log(Recorder& recorder, Function record) {
  ThreadLog* log = recorder.callback_thread_log();
  if (!log) [[unlikely]] return;
  if (log->has_start_end()) [[unlikely]] close_ended_ranges(recorder, *log);
  record(*log);
}

// Calls that are no launches: rare, and kept out of the way of those that are.
[[gnu::noinline, gnu::cold]] void on_other_call(Recorder& recorder, CallKind kind, CUpti_CallbackId id, const CUpti_CallbackData& call) {
  bool enter = call.callbackSite == CUPTI_API_ENTER;
  if (kind == CallKind::kProfilerStart && !enter) recorder.collector.profiler_start();
  if (kind == CallKind::kProfilerStop && enter) recorder.collector.profiler_stop();
  if (kind != CallKind::kGraphCall || enter || failed(call)) return;
  with_log(recorder, [&](ThreadLog& log) { on_graph_call(recorder, log, graph_calls[id], call); });
}

void on_driver_call(Recorder& recorder, CUpti_CallbackId id, const CUpti_CallbackData& call) {
  CallKind kind = id < kMaxDriverCallbacks ? call_kinds[id] : CallKind::kIgnored;
  if (kind > CallKind::kGraphLaunch) [[unlikely]] return on_other_call(recorder, kind, id, call);
  if (kind == CallKind::kIgnored) [[unlikely]] return;
  with_log(recorder, [&](ThreadLog& log) {
    if (call.callbackSite == CUPTI_API_ENTER) {
      log.call = {call.symbolName, false, recorder.collector.recording()};
    } else {
      record_launch(recorder, log, kind, call);
      log.call = {};
    }
  });
}

[[gnu::noinline]] void on_resource(Recorder& recorder, CUpti_CallbackId id, const CUpti_ResourceData& resource) {
  if (id == CUPTI_CBID_RESOURCE_MODULE_UNLOAD_STARTING) {
    recorder.stacks.forget_addresses();  // most likely the library that the module came with is going
    return recorder.activity.forget_names();
  }
  auto* graph = static_cast<const CUpti_GraphData*>(resource.resourceDescriptor);
  if (!graph) return;
  with_log(recorder, [&](ThreadLog& log) { on_graph_event(recorder, log, id, *graph); });
}

}  // namespace

void enable_callbacks(Cupti& cupti) {
  for (CUpti_CallbackId id = 1; id < kMaxDriverCallbacks; ++id) {
    const char* name = nullptr;
    if (cupti.callback_name(CUPTI_CB_DOMAIN_DRIVER_API, id, &name) != CUPTI_SUCCESS || !name) continue;
    call_kinds[id] = kind_of(name);
    graph_calls[id] = graph_call(name);
    if (call_kinds[id] != CallKind::kIgnored) cupti.enable_callback(CUPTI_CB_DOMAIN_DRIVER_API, id);
  }
  cupti.enable_callback(CUPTI_CB_DOMAIN_RESOURCE, CUPTI_CBID_RESOURCE_MODULE_UNLOAD_STARTING);
  enable_graph_callbacks(cupti);
}

void CUPTIAPI on_callback(void*, CUpti_CallbackDomain domain, CUpti_CallbackId id, const void* data) {
  Recorder& recorder = Recorder::instance();
  if (recorder.off()) return;
  Busy busy;
  try {
    if (domain == CUPTI_CB_DOMAIN_DRIVER_API) {
      on_driver_call(recorder, id, *static_cast<const CUpti_CallbackData*>(data));
    } else if (domain == CUPTI_CB_DOMAIN_RESOURCE) {
      on_resource(recorder, id, *static_cast<const CUpti_ResourceData*>(data));
    }
  } catch (...) {
    log_line("out of memory: an event was lost");
  }
}

void CUPTIAPI on_buffer_requested(uint8_t** buffer, size_t* size, size_t* max_records) {
  Busy busy;
  *buffer = Recorder::instance().activity.request();
  *size = *buffer ? ActivityDecoder::kBufferBytes : 0;
  *max_records = 0;
}

void CUPTIAPI on_buffer_completed(CUcontext context, uint32_t stream, uint8_t* buffer, size_t, size_t valid_bytes) {
  Recorder& recorder = Recorder::instance();
  Busy busy;
  try {
    recorder.activity.completed(recorder.cupti, context, stream, buffer, valid_bytes);
  } catch (...) {
    log_line("out of memory: a buffer of kernel records was lost");
  }
}

}  // namespace lamina
