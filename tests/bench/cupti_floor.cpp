// What CUPTI costs by itself: an injection library that switches kernel activity on and throws the records away.
// CUDA_INJECTION64_PATH=…/libcupti_floor.so PROGRAM
#include <cupti.h>
#include <dlfcn.h>
#include <stdlib.h>

#include <initializer_list>

namespace {

constexpr size_t kBufferBytes = 256u << 10;

void CUPTIAPI on_requested(uint8_t** buffer, size_t* size, size_t* max_records) {
  *buffer = static_cast<uint8_t*>(aligned_alloc(8, kBufferBytes));
  *size = kBufferBytes;
  *max_records = 0;
}

void CUPTIAPI on_completed(CUcontext, uint32_t, uint8_t* buffer, size_t, size_t) { free(buffer); }

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

}  // namespace

extern "C" int InitializeInjection() {
  void* cupti = find_cupti();
  if (!cupti) return 0;
  auto* register_callbacks = reinterpret_cast<decltype(&cuptiActivityRegisterCallbacks)>(dlsym(cupti, "cuptiActivityRegisterCallbacks"));
  auto* enable = reinterpret_cast<decltype(&cuptiActivityEnable)>(dlsym(cupti, "cuptiActivityEnable"));
  if (!register_callbacks || !enable) return 0;
  register_callbacks(on_requested, on_completed);
  enable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
  return 1;
}
