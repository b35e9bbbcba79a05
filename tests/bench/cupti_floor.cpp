// What CUPTI costs by itself: an injection library that switches kernel activity on and throws the records away.
// CUDA_INJECTION64_PATH=…/libcupti_floor.so PROGRAM
// With CUPTI_FLOOR=callbacks it also has an empty callback for each launch, copy and fill of the driver API.
#include <cupti.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <atomic>
#include <initializer_list>
#include <string_view>

namespace {

constexpr size_t kBufferBytes = 256u << 10;

void CUPTIAPI on_requested(uint8_t** buffer, size_t* size, size_t* max_records) {
  *buffer = static_cast<uint8_t*>(aligned_alloc(8, kBufferBytes));
  *size = kBufferBytes;
  *max_records = 0;
}

std::atomic<size_t> received_bytes{0};

void CUPTIAPI on_completed(CUcontext, uint32_t, uint8_t* buffer, size_t, size_t valid_bytes) {
  received_bytes += valid_bytes;
  free(buffer);
}

// A floor under which nothing was recorded would be none: who measures it reads this line.
[[gnu::destructor]] void report() { fprintf(stderr, "cupti_floor: %zu bytes of records\n", received_bytes.load()); }

// The copy that the program has mapped, else the toolkit's.
void* find_cupti() {
  for (const char* name : {"libcupti.so.13", "libcupti.so.12"}) {
    if (void* library = dlopen(name, RTLD_NOW | RTLD_NOLOAD)) return library;
  }
  for (const char* name : {"libcupti.so.13", "libcupti.so.12", "/usr/local/cuda/extras/CUPTI/lib64/libcupti.so"}) {
    if (void* library = dlopen(name, RTLD_NOW)) return library;
  }
  return nullptr;
}

template <typename Function>
void find(Function& function, void* library, const char* name) {
  function = reinterpret_cast<Function>(dlsym(library, name));
}

void CUPTIAPI on_callback(void*, CUpti_CallbackDomain, CUpti_CallbackId, const void*) {}

// For the calls that a profiler must see to say from where a kernel was launched.
void add_callbacks(void* cupti) {
  constexpr CUpti_CallbackId kMaxCallbacks = 4096;
  decltype(&cuptiSubscribe) subscribe;
  decltype(&cuptiEnableCallback) enable;
  decltype(&cuptiGetCallbackName) name_of;
  find(subscribe, cupti, "cuptiSubscribe");
  find(enable, cupti, "cuptiEnableCallback");
  find(name_of, cupti, "cuptiGetCallbackName");
  CUpti_SubscriberHandle subscriber;
  if (subscribe(&subscriber, on_callback, nullptr) != CUPTI_SUCCESS) return;
  for (CUpti_CallbackId id = 1; id < kMaxCallbacks; ++id) {
    const char* text = nullptr;
    if (name_of(CUPTI_CB_DOMAIN_DRIVER_API, id, &text) != CUPTI_SUCCESS || !text) continue;
    std::string_view name = text;
    bool seen = name.starts_with("cuLaunch") || name.starts_with("cuGraphLaunch") || name.starts_with("cuMemcpy") || name.starts_with("cuMemset");
    if (seen) enable(1, subscriber, CUPTI_CB_DOMAIN_DRIVER_API, id);
  }
}

}  // namespace

extern "C" int InitializeInjection() {
  void* cupti = find_cupti();
  if (!cupti) return 0;
  decltype(&cuptiActivityRegisterCallbacks) register_callbacks;
  decltype(&cuptiActivityEnable) enable;
  find(register_callbacks, cupti, "cuptiActivityRegisterCallbacks");
  find(enable, cupti, "cuptiActivityEnable");
  if (!register_callbacks || !enable) return 0;
  const char* wanted = getenv("CUPTI_FLOOR");
  if (wanted && strcmp(wanted, "callbacks") == 0) add_callbacks(cupti);
  register_callbacks(on_requested, on_completed);
  enable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
  return 1;
}
