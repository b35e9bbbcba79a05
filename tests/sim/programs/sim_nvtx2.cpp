// Ranges as libnvToolsExt of NVTX 2 hands them over: through InitializeInjectionNvtx and a table of its own, without
// the domains that came later.
#include <dlfcn.h>

#include "sim_program.h"

namespace {

int (*push)(const char*) = nullptr;
int (*pop)() = nullptr;

NvtxFunctionPointer* const kCore[NVTX_CBID_CORE_SIZE] = {
    nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr,
    reinterpret_cast<NvtxFunctionPointer*>(&push),  // RangePushA
    nullptr,
    reinterpret_cast<NvtxFunctionPointer*>(&pop),  // RangePop
};

int get_table(NvtxCallbackModule module, NvtxFunctionTable* table, unsigned* size) {
  if (module != NVTX_CB_MODULE_CORE) return 0;
  *table = const_cast<NvtxFunctionTable>(kCore);
  *size = NVTX_CBID_CORE_SIZE;
  return 1;
}

const void* get_export_table(uint32_t id) {
  static const NvtxExportTableCallbacks callbacks{sizeof(NvtxExportTableCallbacks), get_table};
  return id == NVTX_ETID_CALLBACKS ? &callbacks : nullptr;
}

// As NVTX 2 does at its first call. Without a tool the ranges do nothing.
void find_tool() {
  push = [](const char*) { return -1; };
  pop = [] { return -1; };
  const char* path = getenv("NVTX_INJECTION64_PATH");
  void* tool = path ? dlopen(path, RTLD_LAZY) : nullptr;
  auto* initialize = tool ? reinterpret_cast<NvtxInitializeInjectionNvtxFunc_t>(dlsym(tool, "InitializeInjectionNvtx")) : nullptr;
  if (initialize && initialize(get_export_table) != 1) exit(1);
}

}  // namespace

int main() {
  find_tool();
  start_cuda();
  push("model");
  push("layer");
  launch_only("gemm");
  expect("all", {"model", "layer"}, "gemm", 1);
  pop();
  pop();
  expectations.print();
}
