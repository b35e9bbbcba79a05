// Options, process state, streams and their virtual clock.
#include "device.h"

#include <dlfcn.h>
#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <deque>
#include <mutex>

#include "sim.h"

namespace sim {
namespace {

constexpr uint32_t kDevices = 2;

uint64_t number(const char* name, uint64_t fallback = 0) {
  const char* value = getenv(name);
  return value && *value ? strtoull(value, nullptr, 0) : fallback;
}

Options read_options() {
  Options o{};
  o.cupti_12 = number("SIM_CUPTI_VERSION", 13) == 12;
  o.refuse_subscribe = number("SIM_REFUSE_SUBSCRIBE") != 0;
  o.cupti_thread = number("SIM_CUPTI_THREAD") != 0;
  o.early = number("SIM_EARLY") != 0;
  o.out_of_order = number("SIM_OUT_OF_ORDER") != 0;
  o.withhold = number("SIM_WITHHOLD") != 0;
  o.reuse_names = number("SIM_REUSE_NAMES") != 0;
  o.first_correlation = number("SIM_FIRST_CORRELATION", 1);
  o.buffer_records = number("SIM_BUFFER_RECORDS", ~0ull);
  o.late = number("SIM_LATE");
  o.drop_every = number("SIM_DROP_EVERY");
  o.zero_times_every = number("SIM_ZERO_TIMES_EVERY");
  o.internal_every = number("SIM_INTERNAL_EVERY");
  o.flush_hang_ms = number("SIM_FLUSH_HANG_MS");
  o.slow_thread_end_ms = number("SIM_SLOW_THREAD_END_MS");
  return o;
}

struct Streams {
  std::mutex mutex;
  std::deque<Stream> all;  // the first ones are the devices' default streams
  Streams() {
    for (uint32_t device = 0; device < kDevices; ++device) all.push_back({7 + device, device});
  }
};
Streams& streams() {
  static Streams& instance = *new Streams;
  return instance;
}

std::atomic<bool> is_initialized{false};
std::atomic<bool> is_forked_child{false};
std::atomic<uint64_t> launches{0};
thread_local uint32_t this_device = 0;
thread_local uint64_t this_duration = 1000;
char contexts[kDevices];  // only their addresses count

void load_injection() {
  const char* path = getenv("CUDA_INJECTION64_PATH");
  if (!path || !*path) return;
  void* library = dlopen(path, RTLD_NOW);
  if (!library) {
    fprintf(stderr, "sim: %s\n", dlerror());
    return;
  }
  if (void* door = dlsym(library, "InitializeInjection")) reinterpret_cast<int (*)()>(door)();
}

}  // namespace

thread_local int InTool::depth_ = 0;

const Options& options() {
  static const Options instance = read_options();
  return instance;
}

void misused(const char* what) {
  fprintf(stderr, "sim: misused: %s\n", what);
  abort();
}

bool in_forked_child() { return is_forked_child.load(std::memory_order_relaxed); }
bool initialized() { return is_initialized.load(std::memory_order_acquire); }

CUresult initialize() {
  static std::once_flag once;
  if (in_forked_child()) return CUDA_ERROR_NOT_INITIALIZED;
  std::call_once(once, [] {
    pthread_atfork(nullptr, nullptr, [] { is_forked_child = true; });
    is_initialized = true;
    load_injection();
  });
  return CUDA_SUCCESS;
}

uint64_t realtime() {
  timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1000000000u + static_cast<uint64_t>(now.tv_nsec);
}

void sleep_until(uint64_t time) {
  for (uint64_t now = realtime(); now < time; now = realtime()) {
    uint64_t left = time - now;
    timespec wait{static_cast<time_t>(left / 1000000000u), static_cast<long>(left % 1000000000u)};
    nanosleep(&wait, nullptr);
  }
}

uint64_t duration() { return this_duration; }
uint32_t current_device() { return this_device; }
void set_current_device(uint32_t device) { this_device = device; }
CUcontext context_of(uint32_t device) { return reinterpret_cast<CUcontext>(&contexts[device]); }
uint32_t device_of(CUcontext context) {
  return context ? static_cast<uint32_t>(reinterpret_cast<char*>(context) - contexts) : 0;
}

Stream& stream_of(CUstream handle) {
  if (handle) return *reinterpret_cast<Stream*>(handle);
  return streams().all[this_device];
}

CUstream create_stream() {
  Streams& s = streams();
  std::lock_guard lock(s.mutex);
  s.all.push_back({static_cast<uint32_t>(7 + s.all.size()), this_device});
  return reinterpret_cast<CUstream>(&s.all.back());
}

uint64_t busy_until(const Stream* only) {
  Streams& s = streams();
  std::lock_guard lock(s.mutex);
  uint64_t last = 0;
  for (const Stream& stream : s.all) {
    if (only ? &stream == only : stream.device == this_device) last = std::max(last, stream.busy_until);
  }
  return last;
}

void execute(Stream& stream, const Work& work, const Origin& origin) {
  uint64_t start, end;
  {
    std::lock_guard lock(streams().mutex);
    start = std::max(realtime(), stream.busy_until);
    end = stream.busy_until = start + work.duration;
  }
  add_record(stream, work, origin, start, end);
  if (uint64_t every = options().internal_every; every != 0 && origin.node == 0 && ++launches % every == 0) {
    Work own;
    own.name = "sim_internal_kernel";
    add_record(stream, own, {}, end, end + own.duration);
  }
}

}  // namespace sim

extern "C" void sim_set_duration(unsigned long long nanoseconds) { sim::this_duration = nanoseconds; }

extern "C" void sim_launch_internal(CUstream handle, const char* name) {
  sim::Work work;
  work.name = name;
  work.duration = sim::duration();
  sim::execute(sim::stream_of(handle), work, {});
  sim::deliver_full_buffers();
}
