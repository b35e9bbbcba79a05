"""A deterministic PyTorch program to profile: a few layers of work inside a range `phase:work`.

--profiler: under torch.profiler, and the last line printed is {kernel name: count} of the range.
--cuda-profiler: between cudaProfilerStart and cudaProfilerStop.
"""
import collections
import contextlib
import json
import sys

import torch

torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(256, 512), torch.nn.GELU(), torch.nn.LayerNorm(512), torch.nn.Linear(512, 256))
model = model.cuda().half()
batch = torch.randn(64, 256, device="cuda", dtype=torch.half)


def work():
    with torch.inference_mode():
        for _ in range(5):
            out = model(batch)
            out = torch.softmax(out.float(), dim=-1).half()
            host = out.cpu()
            out.zero_()
            torch.topk(host.cuda(), 4)
    torch.cuda.synchronize()


def kernel_counts(profile):
    kernels = collections.Counter()
    for event in profile.events():
        is_gpu = event.device_type == torch.autograd.DeviceType.CUDA
        if is_gpu and not event.name.startswith("phase:"):
            kernels[event.name] += 1
    return kernels


work()  # loads modules and picks algorithms outside of what is compared
if "--cuda-profiler" in sys.argv:
    torch.cuda.cudart().cudaProfilerStart()
profiler = torch.profiler.profile() if "--profiler" in sys.argv else contextlib.nullcontext()
with profiler as profile:
    torch.cuda.nvtx.range_push("phase:work")
    work()
    torch.cuda.nvtx.range_pop()
if "--cuda-profiler" in sys.argv:
    torch.cuda.cudart().cudaProfilerStop()
    work()
if profile is not None:
    print(json.dumps(kernel_counts(profile)))
