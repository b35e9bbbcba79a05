// The NVTX side: takes over the function table of each NVTX copy in the process and turns its calls into records.
#pragma once

#include <cstdint>

namespace lamina {

// Attaches to one NVTX copy. `get_export_table` is what NVTX 2 and 3 pass to InitializeInjectionNvtx and
// InitializeInjectionNvtx2: it gives NvtxExportTableCallbacks. Returns 1 on success, 0 to leave the copy a no-op.
// Called once for each copy, from any thread, also at the same time.
int attach_nvtx(const void* (*get_export_table)(uint32_t));

// Attaches to the payload extension of a copy (`module_info`: nvtxExtModuleInfo_t), which NVTX 3.2 asks whether a domain
// is enabled. Returns 1 on success.
int attach_nvtx_extension(void* module_info);

}  // namespace lamina
