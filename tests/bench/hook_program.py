"""Measured by scripts/bench-hook: hook_program.py call|op|step MODE. For each line of its input it prints the time of one sample:
ns a module call, ns an op, or ms a decode step. Between samples it waits, so that several of these can take turns.

MODE: plain (nothing of this program's own; an injected profiler may be there), nvtx-hooks (forward hooks with
torch.cuda.nvtx), emit-nvtx (torch.autograd.profiler.emit_nvtx with shapes), torch-profiler (with_modules, with_stack and
record_shapes), proton (Triton's), observer=FOLDER (record_function_floor-VERSION.so, what any observer of ops costs that
asks for shapes).
"""
import contextlib
import ctypes
import os
import sys
import time

import torch
from torch import nn

CALLS = 5000  # a sample of calls or ops
STEPS = 3  # a sample of decode steps


def sample_ns(run):
    begin = time.perf_counter_ns()
    for _ in range(CALLS):
        run()
    return (time.perf_counter_ns() - begin) / CALLS


class Inner(nn.Module):
    def __init__(self):
        super().__init__()
        self.size = 1  # like most modules it has an attribute of its own, which changes how Python keeps all of them

    def forward(self, value):
        return value


class Caller(nn.Module):
    """Most modules are called by another one. `ns`: of the inner one's call."""

    def __init__(self):
        super().__init__()
        self.inner = Inner()
        self.ns = 0

    def forward(self, value):
        inner = self.inner
        self.ns = sample_ns(lambda: inner(value))

    def sample(self, value):
        self(value)
        return self.ns


def module_call():
    caller, value = Caller(), torch.zeros(1)
    return lambda: caller.sample(value)


def op():
    value = torch.zeros(4, 8)
    return lambda: sample_ns(lambda: torch.neg(value))


def decode_step():
    import transformers

    # Without a GPU the widths are small, which leaves the host's part of the step.
    gpu = torch.cuda.is_available()
    widths = {} if gpu else {"hidden_size": 64, "intermediate_size": 64, "vocab_size": 64, "num_attention_heads": 4, "num_key_value_heads": 1}
    config = transformers.MistralConfig(num_hidden_layers=16, sliding_window=None, **widths)
    device = torch.device("cuda" if gpu else "cpu")
    with device:
        model = transformers.AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16).eval()
    prompt, steps = 512 if gpu else 8, 120
    cache = transformers.StaticCache(config, max_cache_len=prompt + steps)
    prompt_ids = torch.ones(4, prompt, dtype=torch.int64, device=device)
    token = torch.ones(4, 1, dtype=torch.int64, device=device)
    finish = torch.cuda.synchronize if gpu else lambda: None
    taken = 0

    def step():
        model(input_ids=token, past_key_values=cache, logits_to_keep=1)
        finish()

    def sample():
        nonlocal taken
        if taken % steps == 0:
            cache.reset()
            model(input_ids=prompt_ids, past_key_values=cache, logits_to_keep=1)
        taken += STEPS + 1
        step()  # after the other programs' turns nothing of this one is in the core's caches
        begin = time.perf_counter_ns()
        for _ in range(STEPS):
            step()
        return (time.perf_counter_ns() - begin) / 1e6 / STEPS

    return sample


def add_nvtx_hooks():
    push, pop = torch.cuda.nvtx.range_push, torch.cuda.nvtx.range_pop
    nn.modules.module.register_module_forward_pre_hook(lambda module, inputs: push(type(module).__name__) and None)
    nn.modules.module.register_module_forward_hook(lambda module, inputs, output: pop() and None)


@contextlib.contextmanager
def proton():
    import triton.profiler

    triton.profiler.start("/tmp/hook_program", context="shadow", hook=None)
    yield
    triton.profiler.finalize()


def mode(name):
    if name == "nvtx-hooks":
        add_nvtx_hooks()
    if name == "emit-nvtx":
        return torch.autograd.profiler.emit_nvtx(record_shapes=True)
    if name == "torch-profiler":
        return torch.profiler.profile(with_modules=True, record_shapes=True, with_stack=True)
    if name.startswith("observer="):
        version = ".".join(torch.__version__.split(".")[:2])
        library = ctypes.CDLL(f"{name.partition('=')[2]}/record_function_floor-{version}.so")
        library.record_function_floor_start()
    return proton() if name == "proton" else contextlib.nullcontext()


def main():
    make_sample = {"call": module_call, "op": op, "step": decode_step}[sys.argv[1]]
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.zeros(1, device=device)  # starts CUDA, and an injected profiler with it
    with torch.inference_mode(), mode(sys.argv[2]):
        sample = make_sample()
        for _ in range(10):
            sample()
        # Cores differ, by their place and by who else is there: the rows take turns on the same one.
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
        print("ready on", device, flush=True)
        for _ in sys.stdin:
            print(f"{sample():.4f}", flush=True)


main()
