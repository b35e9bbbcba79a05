// The simulated device as libcuda and libcupti see it: streams with a virtual clock, CUPTI's callbacks and activity
// buffers. It never outlives a process: nothing is destroyed at exit, so that late threads find everything in place.
#pragma once

#include <cuda.h>
#include <cupti.h>

#include <cstddef>
#include <cstdint>

namespace sim {

struct Graph;

struct Options {
  bool cupti_12, refuse_subscribe, cupti_thread, early, out_of_order, withhold, reuse_names;
  uint64_t first_correlation, buffer_records, late, drop_every, zero_times_every, internal_every, flush_hang_ms, slow_thread_end_ms;
};
const Options& options();

// Ends the program with a message: the tool did what real CUDA or CUPTI does not survive.
[[noreturn]] void misused(const char* what);

// True in a child of a fork of a process that had CUDA initialised.
bool in_forked_child();
bool initialized();
CUresult initialize();

uint64_t realtime();
void sleep_until(uint64_t time);

// ---- what runs

struct Work {
  CUpti_ActivityKind kind = CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;
  uint64_t duration = 1000;
  // kernels
  const char* name = nullptr;  // mangled
  int32_t grid[3] = {}, block[3] = {};
  int32_t shared_memory = 0;
  uint8_t launch_type = CUPTI_ACTIVITY_LAUNCH_TYPE_REGULAR;
  // copies and memsets
  uint64_t bytes = 0;
  uint32_t value = 0;
  uint8_t copy_kind = 0, source_kind = 0, destination_kind = 0;
  bool asynchronous = true;
  uint32_t source_device = 0, destination_device = 0;
};

// A launch from a graph: `node` is the number that CUPTI tells, graph id << 32 | number.
struct Origin {
  uint32_t correlation = 0;
  uint64_t node = 0;
  uint32_t graph = 0;
};

struct Stream {
  uint32_t id;
  uint32_t device;
  Graph* capture = nullptr;
  uint64_t busy_until = 0;
};

uint64_t duration();  // of this thread's launches
Stream& stream_of(CUstream handle);
CUstream create_stream();
uint64_t busy_until(const Stream* stream);  // null: all of this thread's device
uint32_t current_device();
void set_current_device(uint32_t device);
CUcontext context_of(uint32_t device);
uint32_t device_of(CUcontext context);

// Runs behind what the stream does already.
void execute(Stream& stream, const Work& work, const Origin& origin);

// ---- callbacks

bool subscribe(CUpti_CallbackFunc callback, void* user_data);
void unsubscribe();
bool enable_callback(CUpti_CallbackDomain domain, CUpti_CallbackId id, bool on);

// A driver call from its beginning to end(); calls ENTER and EXIT.
class ApiCall {
 public:
  ApiCall(CUpti_CallbackId id, const char* name, const void* parameters, const char* symbol = nullptr);
  CUresult end(CUresult result);
  uint32_t correlation() const { return data_.correlationId; }

 private:
  CUpti_CallbackId id_;
  CUpti_CallbackData data_{};
  uint64_t correlation_data_ = 0;
  CUresult result_ = CUDA_SUCCESS;
};

void resource_callback(CUpti_CallbackIdResource id, void* descriptor);

// ---- activity

void set_activity(CUpti_ActivityKind kind, bool on);
bool activity_on(CUpti_ActivityKind kind);
void register_buffers(CUpti_BuffersCallbackRequestFunc request, CUpti_BuffersCallbackCompleteFunc complete);
void add_record(const Stream& stream, const Work& work, const Origin& origin, uint64_t start, uint64_t end);
void flush(bool forced);
void deliver_full_buffers();
size_t take_dropped();
CUptiResult next_record(uint8_t* buffer, size_t valid_bytes, CUpti_Activity** record);

// Set while the tool's code runs on this thread.
class InTool {
 public:
  InTool() { ++depth_; }
  ~InTool() { --depth_; }
  static void check(const char* what) {
    if (depth_ > 0) misused(what);
  }

 private:
  static thread_local int depth_;
};

}  // namespace sim
