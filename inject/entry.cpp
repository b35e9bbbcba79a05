// The doors: what a driver, an NVTX copy or the dynamic loader calls. All lead to one recording.
#include <cuda.h>
#include <dlfcn.h>
#include <nvtx3/nvToolsExt.h>

#include <cstdlib>
#include <string>

#include "inject/hook_loader.h"
#include "inject/log.h"
#include "inject/nvtx_handler.h"
#include "inject/recorder.h"

#define LAMINA_EXPORT extern "C" __attribute__((visibility("default")))

LAMINA_EXPORT int InitializeInjection();

namespace {

const char* own_path() {
  Dl_info info;
  return dladdr(reinterpret_cast<void*>(&own_path), &info) ? info.dli_fname : nullptr;
}

std::string own_folder() {
  std::string path = own_path() ? own_path() : "";
  return path.substr(0, path.rfind('/'));
}

// So that each door opens the others: NVTX copies and CUDA that start later find this library. What the user set stays.
void set_variables() {
  const char* path = own_path();
  if (!path) return;
  setenv("CUDA_INJECTION64_PATH", path, 0);
  setenv("NVTX_INJECTION64_PATH", path, 0);
}

bool cuda_is_up() {
  void* driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  auto* get_count = driver ? reinterpret_cast<decltype(&cuDeviceGetCount)>(dlsym(driver, "cuDeviceGetCount")) : nullptr;
  int count = 0;
  return get_count && get_count(&count) == CUDA_SUCCESS;
}

// Through NVTX_INJECTION64_PATH alone the driver did not call us if it was there first. Where CUDA_INJECTION64_PATH
// names another tool, CUPTI is that one's.
void start_if_driver_came_first() {
  const char* injected = getenv("CUDA_INJECTION64_PATH");
  const char* path = own_path();
  if (injected && path && std::string(injected) == path && cuda_is_up()) InitializeInjection();
}

// LD_PRELOAD, and any other way to be loaded.
__attribute__((constructor)) void on_load() { set_variables(); }

}  // namespace

// The CUDA driver, inside of cuInit. The answer is not looked at; 1 is success.
LAMINA_EXPORT int InitializeInjection() {
  try {
    if (lamina::Recorder::instance().start()) lamina::load_torch_hook(own_folder());
  } catch (...) {
    lamina::log_line("nothing is recorded: out of memory");
  }
  return 1;
}

// NVTX 3, once for each copy in the process.
LAMINA_EXPORT int InitializeInjectionNvtx2(const void* (*get_export_table)(uint32_t)) {
  start_if_driver_came_first();
  return lamina::attach_nvtx(get_export_table);
}

// NVTX 2 (libnvToolsExt). Its export table has the same form.
LAMINA_EXPORT int InitializeInjectionNvtx(const void* (*get_export_table)(uint32_t)) {
  start_if_driver_came_first();
  return lamina::attach_nvtx(get_export_table);
}

// NVTX extensions, once for each module of each copy.
LAMINA_EXPORT int InitializeInjectionNvtxExtension(void* module_info) { return lamina::attach_nvtx_extension(module_info); }
