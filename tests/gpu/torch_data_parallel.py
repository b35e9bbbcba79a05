"""nn.DataParallel over all GPUs: torch_data_parallel.py. Five calls in phase `steps`, on a thread a GPU."""
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(256, 512), nn.GELU(), nn.Linear(512, 256)).cuda()
parallel = nn.DataParallel(model)
batch = torch.randn(64, 256, device="cuda")
with torch.inference_mode():
    parallel(batch)
    torch.cuda.nvtx.mark("phase:steps")
    for _ in range(5):
        out = parallel(batch)
    torch.cuda.synchronize()
print(f"checksum {out.abs().sum().item():.3f}")
