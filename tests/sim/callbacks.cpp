// CUPTI's callbacks: the one subscriber, what it enabled, and the calls around driver functions and graph events.
#include <atomic>
#include <mutex>

#include "device.h"

namespace sim {
namespace {

constexpr size_t kMaxDriverIds = 4096;
constexpr size_t kMaxResourceIds = 64;

std::atomic<CUpti_CallbackFunc> subscriber{nullptr};
void* subscriber_data = nullptr;
std::atomic<bool> driver_on[kMaxDriverIds];
std::atomic<bool> resource_on[kMaxResourceIds];
std::atomic<uint64_t> correlations{0};

// 0 means "none", so the wrap skips it.
uint32_t next_correlation() {
  for (;;) {
    auto id = static_cast<uint32_t>(options().first_correlation + correlations.fetch_add(1, std::memory_order_relaxed));
    if (id != 0) return id;
  }
}

void call_tool(CUpti_CallbackDomain domain, CUpti_CallbackId id, const void* data) {
  CUpti_CallbackFunc callback = subscriber.load(std::memory_order_acquire);
  if (!callback) return;
  InTool in_tool;
  callback(subscriber_data, domain, id, data);
}

}  // namespace

bool subscribe(CUpti_CallbackFunc callback, void* user_data) {
  static std::mutex mutex;
  std::lock_guard lock(mutex);
  if (subscriber || options().refuse_subscribe) return false;
  subscriber_data = user_data;
  subscriber = callback;
  return true;
}

void unsubscribe() { subscriber = nullptr; }

bool enable_callback(CUpti_CallbackDomain domain, CUpti_CallbackId id, bool on) {
  if (domain == CUPTI_CB_DOMAIN_DRIVER_API && id < kMaxDriverIds) {
    driver_on[id] = on;
    return true;
  }
  bool too_new = options().cupti_12 && id >= 22;
  if (domain != CUPTI_CB_DOMAIN_RESOURCE || id >= kMaxResourceIds || too_new) return false;
  resource_on[id] = on;
  return true;
}

ApiCall::ApiCall(CUpti_CallbackId id, const char* name, const void* parameters, const char* symbol) : id_(id) {
  InTool::check("a CUDA call inside of a callback");
  data_.correlationId = next_correlation();
  if (!driver_on[id].load(std::memory_order_relaxed)) return;
  data_.functionName = name;
  data_.functionParams = parameters;
  data_.functionReturnValue = &result_;
  data_.symbolName = symbol;
  data_.context = context_of(current_device());
  data_.contextUid = current_device() + 1;
  data_.correlationData = &correlation_data_;
  data_.callbackSite = CUPTI_API_ENTER;
  call_tool(CUPTI_CB_DOMAIN_DRIVER_API, id_, &data_);
}

CUresult ApiCall::end(CUresult result) {
  result_ = result;
  if (options().early) flush(true);
  if (data_.functionName) {
    data_.callbackSite = CUPTI_API_EXIT;
    call_tool(CUPTI_CB_DOMAIN_DRIVER_API, id_, &data_);
  }
  deliver_full_buffers();
  return result;
}

void resource_callback(CUpti_CallbackIdResource id, void* descriptor) {
  if (!resource_on[id].load(std::memory_order_relaxed)) return;
  CUpti_ResourceData data{};
  data.context = context_of(current_device());
  data.resourceDescriptor = descriptor;
  call_tool(CUPTI_CB_DOMAIN_RESOURCE, id, &data);
}

}  // namespace sim
