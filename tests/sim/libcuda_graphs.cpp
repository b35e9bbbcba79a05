// Modules and graphs of the simulated libcuda.so.1.
#include <cstring>
#include <mutex>
#include <utility>
#include <vector>

#include "libcuda.h"

using namespace sim;

namespace {

constexpr size_t kMaxName = 1024;

struct Module {
  std::vector<char*> names;
};

// The memory of names, never given back: once a module is gone it is used again if that was asked for.
struct Names {
  std::mutex mutex;
  std::vector<char*> free, kept;
};
Names& names() {
  static Names& instance = *new Names;
  return instance;
}

char* store_name(const char* text) {
  Names& n = names();
  std::lock_guard lock(n.mutex);
  if (n.free.empty()) n.free.push_back(n.kept.emplace_back(new char[kMaxName]));
  char* place = n.free.back();
  n.free.pop_back();
  strncpy(place, text, kMaxName - 1);
  place[kMaxName - 1] = '\0';
  return place;
}

Work node_work(const CUDA_KERNEL_NODE_PARAMS& p) {
  return kernel_work(p.func,
                     {p.gridDimX, p.gridDimY, p.gridDimZ, p.blockDimX, p.blockDimY, p.blockDimZ, p.sharedMemBytes});
}

CUpti_ActivityMemcpyKind copy_kind(const CUDA_MEMCPY3D& copy) {
  if (copy.srcMemoryType == CU_MEMORYTYPE_HOST) return CUPTI_ACTIVITY_MEMCPY_KIND_HTOD;
  return copy.dstMemoryType == CU_MEMORYTYPE_HOST ? CUPTI_ACTIVITY_MEMCPY_KIND_DTOH : CUPTI_ACTIVITY_MEMCPY_KIND_DTOD;
}

}  // namespace

namespace sim {

// A function is its name: what a handle points to begins with it.
const char* name_of(CUfunction function) { return reinterpret_cast<const char*>(function); }

Work kernel_work(CUfunction function, const unsigned (&dims)[7]) {
  Work work;
  work.duration = duration();
  work.name = name_of(function);
  for (int i = 0; i < 3; ++i) {
    work.grid[i] = static_cast<int32_t>(dims[i]);
    work.block[i] = static_cast<int32_t>(dims[3 + i]);
  }
  work.shared_memory = static_cast<int32_t>(dims[6]);
  return work;
}

Work copy_work(CUpti_ActivityMemcpyKind kind, uint64_t bytes, bool asynchronous) {
  Work work;
  work.kind = kind == CUPTI_ACTIVITY_MEMCPY_KIND_PTOP ? CUPTI_ACTIVITY_KIND_MEMCPY2 : CUPTI_ACTIVITY_KIND_MEMCPY;
  work.duration = duration();
  work.bytes = bytes;
  work.copy_kind = static_cast<uint8_t>(kind);
  bool from_host = kind == CUPTI_ACTIVITY_MEMCPY_KIND_HTOD, to_host = kind == CUPTI_ACTIVITY_MEMCPY_KIND_DTOH;
  work.source_kind = from_host ? CUPTI_ACTIVITY_MEMORY_KIND_PAGEABLE : CUPTI_ACTIVITY_MEMORY_KIND_DEVICE;
  work.destination_kind = to_host ? CUPTI_ACTIVITY_MEMORY_KIND_PAGEABLE : CUPTI_ACTIVITY_MEMORY_KIND_DEVICE;
  work.asynchronous = asynchronous;
  return work;
}

}  // namespace sim

extern "C" {

// ---- modules

CUresult CUDAAPI cuModuleLoadData(CUmodule* module, const void*) {
  if (!initialized() || in_forked_child()) return CUDA_ERROR_NOT_INITIALIZED;
  *module = reinterpret_cast<CUmodule>(new Module);
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuModuleGetFunction(CUfunction* function, CUmodule module, const char* name) {
  char* stored = store_name(name);
  reinterpret_cast<Module*>(module)->names.push_back(stored);
  *function = reinterpret_cast<CUfunction>(stored);
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuFuncGetName(const char** name, CUfunction function) {
  *name = name_of(function);
  return CUDA_SUCCESS;
}

// The records that name its kernels are delivered before, so that only what the tool remembers can be stale.
CUresult CUDAAPI cuModuleUnload(CUmodule handle) {
  auto* module = reinterpret_cast<Module*>(handle);
  if (options().reuse_names) flush(true);
  CUpti_ModuleResourceData data{};
  resource_callback(CUPTI_CBID_RESOURCE_MODULE_UNLOAD_STARTING, &data);
  if (options().reuse_names) {
    std::lock_guard lock(names().mutex);
    for (char* name : module->names) strcpy(name, "name_of_an_unloaded_kernel");
    names().free.insert(names().free.end(), module->names.begin(), module->names.end());
  }
  delete module;
  return CUDA_SUCCESS;
}

// ---- capture

CUresult CUDAAPI cuStreamBeginCapture(CUstream handle, CUstreamCaptureMode) {
  ApiCall call(SIM_CALL(cuStreamBeginCapture_v2), nullptr);
  Stream& stream = stream_of(handle);
  if (!handle || stream.capture) return call.end(CUDA_ERROR_ILLEGAL_STATE);
  stream.capture = &create_graph();
  return call.end(CUDA_SUCCESS);
}

CUresult CUDAAPI cuStreamBeginCaptureToGraph(CUstream handle, CUgraph graph, const CUgraphNode*, const CUgraphEdgeData*,
                                             size_t, CUstreamCaptureMode) {
  Stream& stream = stream_of(handle);
  if (!handle || stream.capture) return CUDA_ERROR_ILLEGAL_STATE;
  stream.capture = &graph_of(graph);
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuStreamEndCapture(CUstream handle, CUgraph* graph) {
  ApiCall call(SIM_CALL(cuStreamEndCapture), nullptr);
  *graph = handle_of(std::exchange(stream_of(handle).capture, nullptr));
  return call.end(*graph ? CUDA_SUCCESS : CUDA_ERROR_ILLEGAL_STATE);
}

// ---- graphs made by hand

CUresult CUDAAPI cuGraphCreate(CUgraph* graph, unsigned) {
  ApiCall call(SIM_CALL(cuGraphCreate), nullptr);
  *graph = handle_of(&create_graph());
  return call.end(CUDA_SUCCESS);
}

CUresult CUDAAPI cuGraphAddKernelNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* after, size_t count,
                                      const CUDA_KERNEL_NODE_PARAMS* kernel) {
  cuGraphAddKernelNode_v2_params parameters{node, graph, after, count, kernel};
  ApiCall call(SIM_CALL(cuGraphAddKernelNode_v2), &parameters);
  *node = handle_of(&add_node(graph_of(graph), CU_GRAPH_NODE_TYPE_KERNEL, node_work(*kernel), kernel->func));
  return call.end(CUDA_SUCCESS);
}

CUresult CUDAAPI cuGraphKernelNodeGetParams(CUgraphNode node, CUDA_KERNEL_NODE_PARAMS* kernel) {
  *kernel = {};
  kernel->func = node_of(node).function;
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuGraphKernelNodeSetParams(CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS* kernel) {
  cuGraphKernelNodeSetParams_v2_params parameters{node, kernel};
  ApiCall call(SIM_CALL(cuGraphKernelNodeSetParams_v2), &parameters);
  node_of(node).work = node_work(*kernel);
  node_of(node).function = kernel->func;
  return call.end(CUDA_SUCCESS);
}

CUresult CUDAAPI cuGraphDestroyNode(CUgraphNode node) {
  ApiCall call(SIM_CALL(cuGraphDestroyNode), nullptr);
  remove_node(node_of(node));
  return call.end(CUDA_SUCCESS);
}

CUresult CUDAAPI cuGraphAddMemcpyNode(CUgraphNode* node, CUgraph graph, const CUgraphNode*, size_t,
                                      const CUDA_MEMCPY3D* copy, CUcontext) {
  ApiCall call(SIM_CALL(cuGraphAddMemcpyNode), nullptr);
  Work work = copy_work(copy_kind(*copy), copy->WidthInBytes * copy->Height * copy->Depth, true);
  *node = handle_of(&add_node(graph_of(graph), CU_GRAPH_NODE_TYPE_MEMCPY, work));
  return call.end(CUDA_SUCCESS);
}

CUresult CUDAAPI cuGraphAddMemsetNode(CUgraphNode* node, CUgraph graph, const CUgraphNode*, size_t,
                                      const CUDA_MEMSET_NODE_PARAMS* set, CUcontext) {
  ApiCall call(SIM_CALL(cuGraphAddMemsetNode), nullptr);
  Work work;
  work.kind = CUPTI_ACTIVITY_KIND_MEMSET;
  work.duration = duration();
  work.value = set->value;
  work.bytes = set->elementSize * set->width * set->height;
  *node = handle_of(&add_node(graph_of(graph), CU_GRAPH_NODE_TYPE_MEMSET, work));
  return call.end(CUDA_SUCCESS);
}

CUresult CUDAAPI cuGraphAddEmptyNode(CUgraphNode* node, CUgraph graph, const CUgraphNode*, size_t) {
  ApiCall call(SIM_CALL(cuGraphAddEmptyNode), nullptr);
  *node = handle_of(&add_node(graph_of(graph), CU_GRAPH_NODE_TYPE_EMPTY, {}));
  return call.end(CUDA_SUCCESS);
}

CUresult CUDAAPI cuGraphAddChildGraphNode(CUgraphNode* node, CUgraph graph, const CUgraphNode*, size_t, CUgraph child) {
  ApiCall call(SIM_CALL(cuGraphAddChildGraphNode), nullptr);
  *node = handle_of(&add_child(graph_of(graph), graph_of(child)));
  return call.end(CUDA_SUCCESS);
}

CUresult CUDAAPI cuGraphClone(CUgraph* clone, CUgraph original) {
  ApiCall call(SIM_CALL(cuGraphClone), nullptr);
  *clone = handle_of(&clone_graph(graph_of(original)));
  return call.end(CUDA_SUCCESS);
}

CUresult CUDAAPI cuGraphDestroy(CUgraph graph) {
  ApiCall call(SIM_CALL(cuGraphDestroy), nullptr);
  destroy_graph(graph_of(graph));
  return call.end(CUDA_SUCCESS);
}

// ---- executable graphs

CUresult CUDAAPI cuGraphInstantiateWithFlags(CUgraphExec* exec, CUgraph graph, unsigned long long flags) {
  cuGraphInstantiateWithFlags_params parameters{exec, graph, flags};
  ApiCall call(SIM_CALL(cuGraphInstantiateWithFlags), &parameters);
  *exec = handle_of(&instantiate(graph_of(graph)));
  return call.end(CUDA_SUCCESS);
}

CUresult CUDAAPI cuGraphExecUpdate(CUgraphExec exec, CUgraph graph, CUgraphExecUpdateResultInfo* info) {
  cuGraphExecUpdate_v2_params parameters{exec, graph, info};
  ApiCall call(SIM_CALL(cuGraphExecUpdate_v2), &parameters);
  bool good = update(exec_of(exec), graph_of(graph));
  *info = {};
  info->result = good ? CU_GRAPH_EXEC_UPDATE_SUCCESS : CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED;
  return call.end(good ? CUDA_SUCCESS : CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE);
}

CUresult CUDAAPI cuGraphExecKernelNodeSetParams(CUgraphExec exec, CUgraphNode node,
                                                const CUDA_KERNEL_NODE_PARAMS* kernel) {
  cuGraphExecKernelNodeSetParams_v2_params parameters{exec, node, kernel};
  ApiCall call(SIM_CALL(cuGraphExecKernelNodeSetParams_v2), &parameters);
  return call.end(set_params(exec_of(exec), node_of(node), node_work(*kernel)) ? CUDA_SUCCESS
                                                                               : CUDA_ERROR_INVALID_VALUE);
}

#define SIM_GRAPH_LAUNCH(function)                                      \
  CUresult CUDAAPI function(CUgraphExec exec, CUstream stream) {        \
    function##_params parameters{exec, stream};                         \
    ApiCall call(SIM_CALL(function), &parameters);                      \
    if (!exec) return call.end(CUDA_ERROR_INVALID_VALUE);               \
    if (in_forked_child()) return call.end(CUDA_ERROR_NOT_INITIALIZED); \
    launch(exec_of(exec), stream_of(stream), call.correlation());       \
    return call.end(CUDA_SUCCESS);                                      \
  }
SIM_GRAPH_LAUNCH(cuGraphLaunch)
SIM_GRAPH_LAUNCH(cuGraphLaunch_ptsz)

CUresult CUDAAPI cuGraphExecDestroy(CUgraphExec exec) {
  ApiCall call(SIM_CALL(cuGraphExecDestroy), nullptr);
  destroy_exec(exec_of(exec));
  return call.end(CUDA_SUCCESS);
}

}  // extern "C"
