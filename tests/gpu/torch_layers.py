"""A Mistral-shaped model of transformers: prefill and decode steps, for scripts that look at it in several ways.

torch_layers.py [--layers N] [--batch N] [--prompt N] [--steps N] [--graph] [--profiler] [--time MODE]

--graph: the decode steps are replays of one CUDA graph.
--profiler: the last line printed is {phase: {module path: {kernel: count}}}, as torch.profiler's module tree has it.
--unnamed: without ranges of its own, for the hook to find the steps.
"""
import argparse
import collections
import contextlib
import json

import torch
import transformers


def parse_arguments():
    parser = argparse.ArgumentParser()
    for name, value in (("layers", 32), ("batch", 4), ("prompt", 512), ("steps", 4)):
        parser.add_argument(f"--{name}", type=int, default=value)
    for name in ("graph", "profiler", "unnamed"):
        parser.add_argument(f"--{name}", action="store_true")
    return parser.parse_args()


def make_model(layers):
    torch.manual_seed(0)
    config = transformers.MistralConfig(num_hidden_layers=layers, sliding_window=None)
    with torch.device("cuda"):
        return transformers.AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16).eval()


class Loop:
    """Greedy steps over a cache of fixed size, so that the same kernels run eagerly and in a graph."""

    def __init__(self, model, options):
        self.model = model
        self.cache = transformers.StaticCache(model.config, max_cache_len=options.prompt + options.steps + 8)
        self.prompt = torch.randint(0, 32000, (options.batch, options.prompt), device="cuda")
        self.token = torch.zeros((options.batch, 1), dtype=torch.int64, device="cuda")
        self.graph = None

    def forward(self, ids):
        logits = self.model(input_ids=ids, past_key_values=self.cache, use_cache=True, logits_to_keep=1).logits
        self.token.copy_(logits[:, -1:].argmax(dim=-1))

    def prefill(self):
        self.cache.reset()
        self.forward(self.prompt)

    def decode(self):
        self.graph.replay() if self.graph else self.forward(self.token)

    def capture(self):
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            self.forward(self.token)
        torch.cuda.current_stream().wait_stream(stream)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            self.forward(self.token)
        self.graph = graph


@contextlib.contextmanager
def phase(name, unnamed=False):
    torch.cuda.synchronize()
    if not unnamed:
        torch.cuda.nvtx.range_push(f"phase:{name}")
    with torch.profiler.record_function(f"phase:{name}") if not unnamed else contextlib.nullcontext():
        yield
        torch.cuda.synchronize()
    if not unnamed:
        torch.cuda.nvtx.range_pop()


def run(loop, options):
    with phase("prefill", options.unnamed):
        loop.prefill()
    for _ in range(options.steps):
        with phase("decode", options.unnamed):
            loop.decode()


# ---- torch.profiler's own tree of modules


def kernels_by_module(profile):
    """From its event tree, in which module calls are Python calls that know their module, and kernels are leaves. A phase is
    no parent there, but an interval of time, in which its kernels run too."""
    results = profile.profiler.kineto_results
    names = {event.name() for event in results.events() if event.device_type() == torch.autograd.DeviceType.CUDA}
    names = {name for name in names if not name.startswith("phase:")}
    kernels, phases = [], []

    def visit(event, path):
        if event.name.startswith("phase:"):
            phases.append((event.start_time_ns, event.end_time_ns, event.name[6:]))
        elif event.name in names:
            kernels.append((event.start_time_ns, "/".join(path), event.name))
        module = getattr(event.extra_fields, "module", None)
        for child in event.children:
            visit(child, path if module is None else path + (module.cls_name,))

    for root in results.experimental_event_tree():
        visit(root, ())
    found = collections.defaultdict(lambda: collections.defaultdict(collections.Counter))
    for time, path, name in kernels:
        for phase_name in {phase[2] for phase in phases if phase[0] <= time <= phase[1]}:
            found[phase_name][path][name] += 1
    return found


def main():
    options = parse_arguments()
    loop = Loop(make_model(options.layers), options)
    with torch.inference_mode():
        loop.prefill()
        loop.decode()
        if options.graph:
            loop.capture()
        if not options.profiler:
            run(loop, options)
            return
        activities = [torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA]
        with torch.profiler.profile(activities=activities, with_stack=True, with_modules=True, record_shapes=True) as profile:
            run(loop, options)
        print(json.dumps(kernels_by_module(profile)))


main()
