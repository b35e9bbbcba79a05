// CUPTI's activity records and buffers, with all the ways in which they may come late, shuffled, cut or not at all.
#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <new>
#include <thread>
#include <vector>

#include <limits.h>
#include <pthread.h>
#include <unistd.h>

#include "device.h"

namespace sim {
namespace {

// CUPTI 13 appends to the records of CUPTI 12: this many bytes.
constexpr size_t kNewKernelBytes = 8;
constexpr size_t kNewMemcpyBytes = 8;
#if CUPTI_API_VERSION >= 130000
static_assert(sizeof(CUpti_ActivityKernel10) == sizeof(CUpti_ActivityKernel9) + kNewKernelBytes);
static_assert(sizeof(CUpti_ActivityMemcpy6) == sizeof(CUpti_ActivityMemcpy5) + kNewMemcpyBytes);
#endif
constexpr size_t kShuffleWindow = 64;
constexpr size_t kReversedBuffers = 4;
constexpr size_t kMaxRecordBytes = 256;

struct Record {
  alignas(8) uint8_t bytes[kMaxRecordBytes];
  size_t size;
  uint64_t end;
  std::thread::id thread;
};

struct Buffer {
  uint8_t* data = nullptr;
  size_t size = 0, used = 0;
  uint64_t records = 0, last_end = 0;
};

struct State {
  std::mutex mutex;
  CUpti_BuffersCallbackRequestFunc request = nullptr;
  CUpti_BuffersCallbackCompleteFunc complete = nullptr;
  std::atomic<bool> on[256] = {};
  std::deque<Record> pending;              // not in a buffer yet
  std::map<std::thread::id, Buffer> open;  // one a thread with CUPTI 13, one for all with 12
  std::deque<Buffer> full;
  uint64_t records = 0;
  uint32_t random = 1;
  std::atomic<size_t> dropped{0};
  std::atomic<size_t> full_count{0};

  // The thread of SIM_CUPTI_THREAD.
  std::condition_variable work, idle;
  std::deque<Buffer> queue;
  bool busy = false;
};
State& state() {
  static State& instance = *new State;
  return instance;
}

size_t record_size(CUpti_ActivityKind kind) {
  size_t more = options().cupti_12 ? 0 : 1;
  switch (kind) {
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
      return sizeof(CUpti_ActivityKernel9) + more * kNewKernelBytes;
    case CUPTI_ACTIVITY_KIND_MEMCPY:
      return sizeof(CUpti_ActivityMemcpy5) + more * kNewMemcpyBytes;
    case CUPTI_ACTIVITY_KIND_MEMCPY2:
      return sizeof(CUpti_ActivityMemcpyPtoP4);
    default:
      return sizeof(CUpti_ActivityMemset4);
  }
}

// What all kinds of records have. The place is zeroed.
template <typename T>
T& begin_record(Record& record, const Stream& stream, const Work& work, const Origin& origin, uint64_t start) {
  auto& r = *new (record.bytes) T;
  r.kind = work.kind;
  r.start = start;
  r.end = start == 0 ? 0 : record.end;
  r.deviceId = stream.device;
  r.contextId = stream.device + 1;
  r.streamId = stream.id;
  r.correlationId = origin.correlation;
  r.graphNodeId = origin.node;
  r.graphId = origin.graph;
  return r;
}

void fill_kernel(CUpti_ActivityKernel9& r, const Work& work) {
  r.name = work.name;
  r.gridX = work.grid[0], r.gridY = work.grid[1], r.gridZ = work.grid[2];
  r.blockX = work.block[0], r.blockY = work.block[1], r.blockZ = work.block[2];
  r.dynamicSharedMemory = work.shared_memory;
  r.registersPerThread = 32;
  r.launchType = work.launch_type;
}

template <typename T>
void fill_copy(T& r, const Work& work) {
  r.copyKind = work.copy_kind;
  r.srcKind = work.source_kind;
  r.dstKind = work.destination_kind;
  r.flags = work.asynchronous ? CUPTI_ACTIVITY_FLAG_MEMCPY_ASYNC : CUPTI_ACTIVITY_FLAG_NONE;
  r.bytes = work.bytes;
}

void fill(Record& record, const Stream& stream, const Work& work, const Origin& origin, uint64_t start) {
  memset(record.bytes, 0, sizeof(record.bytes));
  switch (work.kind) {
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
      fill_kernel(begin_record<CUpti_ActivityKernel9>(record, stream, work, origin, start), work);
      break;
    case CUPTI_ACTIVITY_KIND_MEMCPY:
      fill_copy(begin_record<CUpti_ActivityMemcpy5>(record, stream, work, origin, start), work);
      break;
    case CUPTI_ACTIVITY_KIND_MEMCPY2: {
      auto& r = begin_record<CUpti_ActivityMemcpyPtoP4>(record, stream, work, origin, start);
      fill_copy(r, work);
      r.srcDeviceId = work.source_device, r.srcContextId = work.source_device + 1;
      r.dstDeviceId = work.destination_device, r.dstContextId = work.destination_device + 1;
      break;
    }
    default: {
      auto& r = begin_record<CUpti_ActivityMemset4>(record, stream, work, origin, start);
      r.value = work.value;
      r.bytes = work.bytes;
      r.memoryKind = CUPTI_ACTIVITY_MEMORY_KIND_DEVICE;
    }
  }
  record.size = record_size(work.kind);
}

// ---- buffers; the caller holds the mutex

void close_buffer(State& s, Buffer& buffer) {
  if (buffer.records > 0) {
    s.full.push_back(buffer);
    s.full_count = s.full.size();
    buffer = {};
  }
}

void write(State& s, const Record& record) {
  Buffer& buffer = s.open[options().cupti_12 ? std::thread::id() : record.thread];
  if (buffer.size - buffer.used < record.size || buffer.records >= options().buffer_records) close_buffer(s, buffer);
  if (!buffer.data) {
    size_t max_records = 0;
    InTool in_tool;
    s.request(&buffer.data, &buffer.size, &max_records);
    if (!buffer.data || buffer.size < kMaxRecordBytes) misused("no buffer for activity records");
    if (reinterpret_cast<uintptr_t>(buffer.data) % 8 != 0) misused("a buffer that is not aligned");
  }
  memcpy(buffer.data + buffer.used, record.bytes, record.size);
  buffer.used += record.size;
  buffer.last_end = std::max(buffer.last_end, record.end);
  ++buffer.records;
}

void write_one_pending(State& s) {
  size_t at = 0;
  if (options().out_of_order) {
    s.random = s.random * 1664525u + 1013904223u;
    at = (s.random >> 8) % s.pending.size();
  }
  write(s, s.pending[at]);
  s.pending.erase(s.pending.begin() + static_cast<std::ptrdiff_t>(at));
}

std::vector<Buffer> take_full(State& s) {
  std::vector<Buffer> buffers(s.full.begin(), s.full.end());
  if (options().out_of_order) buffers.assign(s.full.rbegin(), s.full.rend());
  s.full.clear();
  s.full_count = 0;
  return buffers;
}

// ---- delivery; without the mutex

void complete(State& s, const Buffer& buffer) {
  InTool in_tool;
  s.complete(context_of(0), 0, buffer.data, buffer.size, buffer.used);
}

void run_cupti_thread(State& s) {
  std::unique_lock lock(s.mutex);
  for (;;) {
    s.work.wait(lock, [&] { return !s.queue.empty(); });
    Buffer buffer = s.queue.front();
    s.queue.pop_front();
    s.busy = true;
    lock.unlock();
    complete(s, buffer);
    lock.lock();
    s.busy = false;
    s.idle.notify_all();
  }
}

void deliver(State& s, const std::vector<Buffer>& buffers) {
  if (!options().cupti_thread) {
    for (const Buffer& buffer : buffers) complete(s, buffer);
    return;
  }
  std::lock_guard lock(s.mutex);
  s.queue.insert(s.queue.end(), buffers.begin(), buffers.end());
  s.work.notify_all();
}

// A destructor that asks for another round each time comes once more in the last round, behind those of other keys.
void end_thread_slowly() {
  static thread_local int rounds = 0;
  static pthread_key_t key = [] {
    pthread_key_t made;
    pthread_key_create(&made, [](void* value) {
      if (++rounds < PTHREAD_DESTRUCTOR_ITERATIONS) {
        pthread_setspecific(key, value);
      } else {
        usleep(static_cast<useconds_t>(options().slow_thread_end_ms * 1000));
      }
    });
    return made;
  }();
  pthread_setspecific(key, &rounds);
}

}  // namespace

void set_activity(CUpti_ActivityKind kind, bool on) { state().on[kind] = on; }
bool activity_on(CUpti_ActivityKind kind) { return state().on[kind].load(std::memory_order_relaxed); }
size_t take_dropped() { return state().dropped.exchange(0); }

void register_buffers(CUpti_BuffersCallbackRequestFunc request, CUpti_BuffersCallbackCompleteFunc completed) {
  State& s = state();
  s.request = request;
  s.complete = completed;
  if (options().cupti_thread) std::thread([&s] { run_cupti_thread(s); }).detach();
}

void add_record(const Stream& stream, const Work& work, const Origin& origin, uint64_t start, uint64_t end) {
  State& s = state();
  if (!activity_on(work.kind) || !s.request) return;
  const Options& o = options();
  std::lock_guard lock(s.mutex);
  ++s.records;
  if (o.drop_every != 0 && s.records % o.drop_every == 0) {
    ++s.dropped;
    return;
  }
  if (o.zero_times_every != 0 && s.records % o.zero_times_every == 0) start = 0;
  Record& record = s.pending.emplace_back();
  record.end = end;
  record.thread = std::this_thread::get_id();
  fill(record, stream, work, origin, start);
  size_t kept = std::max<size_t>(o.late, o.out_of_order ? kShuffleWindow : 0);
  while (s.pending.size() > kept) write_one_pending(s);
}

void deliver_full_buffers() {
  State& s = state();
  size_t needed = options().out_of_order ? kReversedBuffers : 1;
  if (options().withhold || s.full_count.load(std::memory_order_relaxed) < needed) return;
  std::vector<Buffer> buffers;
  {
    std::lock_guard lock(s.mutex);
    buffers = take_full(s);
  }
  deliver(s, buffers);
}

void flush(bool forced) {
  State& s = state();
  if (options().slow_thread_end_ms != 0) end_thread_slowly();
  sleep_until(realtime() + options().flush_hang_ms * 1000000u);
  if (!s.complete || (options().withhold && !forced)) return;
  std::vector<Buffer> buffers;
  {
    std::lock_guard lock(s.mutex);
    while (forced && !s.pending.empty()) write_one_pending(s);
    // What is still running keeps its whole buffer back.
    for (auto& [thread, buffer] : s.open) {
      if (forced || buffer.last_end <= realtime()) close_buffer(s, buffer);
    }
    buffers = take_full(s);
  }
  deliver(s, buffers);
  std::unique_lock lock(s.mutex);
  s.idle.wait(lock, [&] { return s.queue.empty() && !s.busy; });
}

CUptiResult next_record(uint8_t* buffer, size_t valid_bytes, CUpti_Activity** record) {
  uint8_t* next = buffer;
  if (*record) next = reinterpret_cast<uint8_t*>(*record) + record_size((*record)->kind);
  if (next >= buffer + valid_bytes) return CUPTI_ERROR_MAX_LIMIT_REACHED;
  *record = reinterpret_cast<CUpti_Activity*>(next);
  return CUPTI_SUCCESS;
}

}  // namespace sim
