// The doors: what a driver, an NVTX copy or the dynamic loader calls. All lead to one recording.
#include <dlfcn.h>
#include <nvtx3/nvToolsExt.h>

#include <cstdlib>

#include "inject/log.h"
#include "inject/nvtx_handler.h"
#include "inject/recorder.h"

#define LAMINA_EXPORT extern "C" __attribute__((visibility("default")))

namespace {

// So that each door opens the others: NVTX copies and CUDA that start later find this library. What the user set stays.
void set_variables() {
  Dl_info info;
  if (!dladdr(reinterpret_cast<void*>(&set_variables), &info) || !info.dli_fname) return;
  setenv("CUDA_INJECTION64_PATH", info.dli_fname, 0);
  setenv("NVTX_INJECTION64_PATH", info.dli_fname, 0);
}

// LD_PRELOAD, and any other way to be loaded.
__attribute__((constructor)) void on_load() { set_variables(); }

}  // namespace

// The CUDA driver, inside of cuInit. The answer is not looked at; 1 is success.
LAMINA_EXPORT int InitializeInjection() {
  try {
    lamina::Recorder::instance().start();
  } catch (...) {
    lamina::log_line("nothing is recorded: out of memory");
  }
  return 1;
}

// NVTX 3, once for each copy in the process.
LAMINA_EXPORT int InitializeInjectionNvtx2(const void* (*get_export_table)(uint32_t)) {
  return lamina::attach_nvtx(get_export_table);
}

// NVTX 2 (libnvToolsExt). Its export table has the same form.
LAMINA_EXPORT int InitializeInjectionNvtx(const void* (*get_export_table)(uint32_t)) {
  return lamina::attach_nvtx(get_export_table);
}

// NVTX extensions, once for each module of each copy.
LAMINA_EXPORT int InitializeInjectionNvtxExtension(void* module_info) { return lamina::attach_nvtx_extension(module_info); }
