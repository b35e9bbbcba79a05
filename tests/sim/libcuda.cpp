// libcuda.so.1 of the simulated device: devices, contexts, modules, streams, launches and copies. Graphs are in
// libcuda_graphs.cpp. Device memory is host memory.
#include "libcuda.h"

#include <cudaProfiler.h>

#include <cstdlib>
#include <cstring>

using namespace sim;

namespace {

// Puts the work onto the stream, or into the graph that the stream is capturing.
CUresult run(const ApiCall& call, CUstream handle, const Work& work, CUgraphNodeType type,
             CUfunction function = nullptr) {
  Stream& stream = stream_of(handle);
  if (stream.capture) {
    add_node(*stream.capture, type, work, function);
  } else {
    execute(stream, work, {call.correlation(), 0, 0});
  }
  return CUDA_SUCCESS;
}

CUresult launch_kernel(ApiCall& call, CUfunction f, const unsigned (&dims)[7], CUstream stream, uint8_t type) {
  if (!initialized() || in_forked_child()) return call.end(CUDA_ERROR_NOT_INITIALIZED);
  if (!f) return call.end(CUDA_ERROR_INVALID_HANDLE);
  Work work = kernel_work(f, dims);
  if (work.grid[0] == 0 || work.block[0] == 0) return call.end(CUDA_ERROR_INVALID_VALUE);
  work.launch_type = type;
  return call.end(run(call, stream, work, CU_GRAPH_NODE_TYPE_KERNEL, f));
}

CUresult copy(ApiCall& call, void* to, const void* from, size_t bytes, CUstream stream, CUpti_ActivityMemcpyKind kind,
              bool asynchronous) {
  if (!initialized() || in_forked_child()) return call.end(CUDA_ERROR_NOT_INITIALIZED);
  if (!to || !from) return call.end(CUDA_ERROR_INVALID_VALUE);
  memmove(to, from, bytes);
  return call.end(run(call, stream, copy_work(kind, bytes, asynchronous), CU_GRAPH_NODE_TYPE_MEMCPY));
}

CUresult set(ApiCall& call, uint32_t value, size_t bytes, CUstream stream) {
  if (!initialized() || in_forked_child()) return call.end(CUDA_ERROR_NOT_INITIALIZED);
  Work work;
  work.kind = CUPTI_ACTIVITY_KIND_MEMSET;
  work.duration = duration();
  work.value = value;
  work.bytes = bytes;
  return call.end(run(call, stream, work, CU_GRAPH_NODE_TYPE_MEMSET));
}

void* pointer(CUdeviceptr address) { return reinterpret_cast<void*>(address); }

}  // namespace

extern "C" {

// ---- start, devices, contexts

CUresult CUDAAPI cuInit(unsigned) { return initialize(); }

CUresult CUDAAPI cuDriverGetVersion(int* version) {
  *version = options().cupti_12 ? 12080 : 13000;
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuDeviceGetCount(int* count) {
  if (!initialized() || in_forked_child()) return CUDA_ERROR_NOT_INITIALIZED;
  *count = 2;
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuDeviceGet(CUdevice* device, int ordinal) {
  if (ordinal < 0 || ordinal > 1) return CUDA_ERROR_INVALID_DEVICE;
  *device = ordinal;
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuDeviceGetName(char* name, int length, CUdevice) {
  strncpy(name, "Simulated GPU", static_cast<size_t>(length));
  name[length - 1] = '\0';
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuDeviceGetAttribute(int* value, CUdevice_attribute attribute, CUdevice) {
  switch (attribute) {
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
      *value = 9;
      break;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR:
      *value = 0;
      break;
    case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT:
      *value = 100;
      break;
    default:
      *value = 1000;
  }
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuDeviceTotalMem(size_t* bytes, CUdevice) {
  *bytes = size_t{64} << 30;
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice device) {
  if (!initialized() || in_forked_child()) return CUDA_ERROR_NOT_INITIALIZED;
  *context = context_of(static_cast<uint32_t>(device));
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuDevicePrimaryCtxRelease(CUdevice) { return CUDA_SUCCESS; }

CUresult CUDAAPI cuCtxSetCurrent(CUcontext context) {
  set_current_device(device_of(context));
  return CUDA_SUCCESS;
}

#if CUDA_VERSION >= 13000
CUresult CUDAAPI cuCtxCreate(CUcontext* context, CUctxCreateParams*, unsigned, CUdevice device) {
#else
CUresult CUDAAPI cuCtxCreate(CUcontext* context, unsigned, CUdevice device) {
#endif
  if (CUresult result = cuDevicePrimaryCtxRetain(context, device); result != CUDA_SUCCESS) return result;
  return cuCtxSetCurrent(*context);
}

CUresult CUDAAPI cuCtxDestroy(CUcontext) { return CUDA_SUCCESS; }

CUresult CUDAAPI cuCtxSynchronize() {
  if (in_forked_child()) return CUDA_ERROR_NOT_INITIALIZED;
  sleep_until(busy_until(nullptr));
  return CUDA_SUCCESS;
}

// ---- memory and streams

CUresult CUDAAPI cuMemAlloc(CUdeviceptr* address, size_t bytes) {
  *address = reinterpret_cast<CUdeviceptr>(malloc(bytes));
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuMemFree(CUdeviceptr address) {
  free(pointer(address));
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuStreamCreate(CUstream* stream, unsigned) {
  if (!initialized() || in_forked_child()) return CUDA_ERROR_NOT_INITIALIZED;
  *stream = create_stream();
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuStreamDestroy(CUstream) { return CUDA_SUCCESS; }  // its memory stays: records may refer to it

CUresult CUDAAPI cuStreamSynchronize(CUstream stream) {
  if (in_forked_child()) return CUDA_ERROR_NOT_INITIALIZED;
  sleep_until(busy_until(&stream_of(stream)));
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuProfilerStart() {
  ApiCall call(SIM_CALL(cuProfilerStart), nullptr);
  return call.end(CUDA_SUCCESS);
}

CUresult CUDAAPI cuProfilerStop() {
  ApiCall call(SIM_CALL(cuProfilerStop), nullptr);
  return call.end(CUDA_SUCCESS);
}

// ---- launches

#define SIM_LAUNCH_KERNEL(function, type)                                                                       \
  CUresult CUDAAPI function(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,      \
                            unsigned bz, unsigned shared, CUstream stream, void** arguments SIM_EXTRA_##type) { \
    function##_params parameters{f, gx, gy, gz, bx, by, bz, shared, stream, arguments SIM_EXTRA_VALUE_##type};  \
    ApiCall call(SIM_CALL(function), &parameters, name_of(f));                                                  \
    return launch_kernel(call, f, {gx, gy, gz, bx, by, bz, shared}, stream, CUPTI_ACTIVITY_LAUNCH_TYPE_##type); \
  }
#define SIM_EXTRA_REGULAR , void** extra
#define SIM_EXTRA_VALUE_REGULAR , extra
#define SIM_EXTRA_COOPERATIVE_SINGLE_DEVICE
#define SIM_EXTRA_VALUE_COOPERATIVE_SINGLE_DEVICE

SIM_LAUNCH_KERNEL(cuLaunchKernel, REGULAR)
SIM_LAUNCH_KERNEL(cuLaunchKernel_ptsz, REGULAR)
SIM_LAUNCH_KERNEL(cuLaunchCooperativeKernel, COOPERATIVE_SINGLE_DEVICE)

CUresult CUDAAPI cuLaunchKernelEx(const CUlaunchConfig* c, CUfunction f, void** arguments, void** extra) {
  cuLaunchKernelEx_params parameters{c, f, arguments, extra};
  ApiCall call(SIM_CALL(cuLaunchKernelEx), &parameters, name_of(f));
  return launch_kernel(
      call, f, {c->gridDimX, c->gridDimY, c->gridDimZ, c->blockDimX, c->blockDimY, c->blockDimZ, c->sharedMemBytes},
      c->hStream, CUPTI_ACTIVITY_LAUNCH_TYPE_REGULAR);
}

// ---- copies and memsets

CUresult CUDAAPI cuMemcpyHtoD(CUdeviceptr to, const void* from, size_t bytes) {
  cuMemcpyHtoD_v2_params parameters{to, from, bytes};
  ApiCall call(SIM_CALL(cuMemcpyHtoD_v2), &parameters);
  return copy(call, pointer(to), from, bytes, nullptr, CUPTI_ACTIVITY_MEMCPY_KIND_HTOD, false);
}

CUresult CUDAAPI cuMemcpyDtoH(void* to, CUdeviceptr from, size_t bytes) {
  cuMemcpyDtoH_v2_params parameters{to, from, bytes};
  ApiCall call(SIM_CALL(cuMemcpyDtoH_v2), &parameters);
  return copy(call, to, pointer(from), bytes, nullptr, CUPTI_ACTIVITY_MEMCPY_KIND_DTOH, false);
}

CUresult CUDAAPI cuMemcpyHtoDAsync(CUdeviceptr to, const void* from, size_t bytes, CUstream stream) {
  cuMemcpyHtoDAsync_v2_params parameters{to, from, bytes, stream};
  ApiCall call(SIM_CALL(cuMemcpyHtoDAsync_v2), &parameters);
  return copy(call, pointer(to), from, bytes, stream, CUPTI_ACTIVITY_MEMCPY_KIND_HTOD, true);
}

CUresult CUDAAPI cuMemcpyDtoDAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream) {
  cuMemcpyDtoDAsync_v2_params parameters{to, from, bytes, stream};
  ApiCall call(SIM_CALL(cuMemcpyDtoDAsync_v2), &parameters);
  return copy(call, pointer(to), pointer(from), bytes, stream, CUPTI_ACTIVITY_MEMCPY_KIND_DTOD, true);
}

CUresult CUDAAPI cuMemcpyPeerAsync(CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context,
                                   size_t bytes, CUstream stream) {
  cuMemcpyPeerAsync_params parameters{to, to_context, from, from_context, bytes, stream};
  ApiCall call(SIM_CALL(cuMemcpyPeerAsync), &parameters);
  if (!initialized() || in_forked_child()) return call.end(CUDA_ERROR_NOT_INITIALIZED);
  memmove(pointer(to), pointer(from), bytes);
  Work work = copy_work(CUPTI_ACTIVITY_MEMCPY_KIND_PTOP, bytes, true);
  work.source_device = device_of(from_context);
  work.destination_device = device_of(to_context);
  return call.end(run(call, stream, work, CU_GRAPH_NODE_TYPE_MEMCPY));
}

CUresult CUDAAPI cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t count, CUstream stream) {
  cuMemsetD8Async_params parameters{to, value, count, stream};
  ApiCall call(SIM_CALL(cuMemsetD8Async), &parameters);
  return set(call, value, count, stream);
}

CUresult CUDAAPI cuMemsetD32Async(CUdeviceptr to, unsigned value, size_t count, CUstream stream) {
  cuMemsetD32Async_params parameters{to, value, count, stream};
  ApiCall call(SIM_CALL(cuMemsetD32Async), &parameters);
  return set(call, value, count * 4, stream);
}

}  // extern "C"
