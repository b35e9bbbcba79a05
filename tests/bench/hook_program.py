"""Measured by scripts/bench-hook: hook_program.py call|op|step MODE. Prints one number: ns a module call, ns an op, or ms a
decode step. Of what it measures it gives the lowest tenth, since other programs of the machine only add.

MODE: plain (nothing of this program's own; an injected profiler may be there), nvtx-hooks (forward hooks with
torch.cuda.nvtx), emit-nvtx (torch.autograd.profiler.emit_nvtx with shapes), torch-profiler (with_modules, with_stack and
record_shapes), proton (Triton's).
"""
import contextlib
import sys
import time

import torch
from torch import nn

ROUNDS = 15


def lowest_tenth(times):
    return sorted(times)[len(times) // 10]


def quiet_ns(run, times):
    """The time of one `run` in the quiet rounds, in ns."""
    run()
    rounds = []
    for _ in range(ROUNDS):
        begin = time.perf_counter_ns()
        for _ in range(times):
            run()
        rounds.append((time.perf_counter_ns() - begin) / times)
    return lowest_tenth(rounds)


def measure_call():
    module, value = nn.Identity(), torch.zeros(1)
    return quiet_ns(lambda: module(value), 20000)


def measure_op():
    value = torch.zeros(4, 8)
    return quiet_ns(lambda: torch.neg(value), 20000)


def measure_step():
    import transformers

    config = transformers.MistralConfig(num_hidden_layers=16, sliding_window=None)
    with torch.device("cuda"):
        model = transformers.AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16).eval()
    cache = transformers.StaticCache(config, max_cache_len=640)
    model(input_ids=torch.ones(4, 512, dtype=torch.int64, device="cuda"), past_key_values=cache, logits_to_keep=1)
    token = torch.ones(4, 1, dtype=torch.int64, device="cuda")

    def step():
        model(input_ids=token, past_key_values=cache, logits_to_keep=1)
        torch.cuda.synchronize()

    steps = []
    for _ in range(100):
        begin = time.perf_counter_ns()
        step()
        steps.append(time.perf_counter_ns() - begin)
    return lowest_tenth(steps[10:]) / 1e6


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
    return proton() if name == "proton" else contextlib.nullcontext()


def main():
    measure = {"call": measure_call, "op": measure_op, "step": measure_step}[sys.argv[1]]
    with torch.inference_mode(), mode(sys.argv[2]):
        result = measure()
    print(f"{result:.4f}")


main()
