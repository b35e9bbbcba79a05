// Asks for the PyTorch hook (nvtx_hooks/) in a process that has PyTorch. The hook speaks to the recorder through NVTX.
#pragma once

#include <string>

namespace lamina {

// At CUDA initialisation; `folder`: where this library lies. In a process that holds a Python interpreter, the main thread
// runs lamina_torch.py at its next chance (a helper thread does, if that is blocked); in one with LibTorch alone, the
// observer of ops is loaded. Does nothing where the hook was not built, or with LAMINA_TORCH=off.
void load_torch_hook(const std::string& folder);

}  // namespace lamina
