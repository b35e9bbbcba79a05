"""What torch.compile, export, FX and TorchScript make of a model, as JSON: must be the same with and without the hook.

compile_program.py [warm] [late]: with the model called before it is compiled; with the hook started only after Dynamo is
imported, as at CUDA's start (LATE_HOOK: the path of lamina_torch.py).
"""
import contextlib
import hashlib
import importlib.util
import io
import json
import logging
import os
import re
import sys
import warnings

import torch
import torch._dynamo
from torch import nn
from torch._dynamo.symbolic_convert import InliningInstructionTranslator
from torch._dynamo.utils import counters

warnings.filterwarnings("ignore")


class MLP(nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.down = nn.Linear(4, 8), nn.Linear(8, 4)

    def forward(self, x):
        return self.down(nn.functional.silu(self.up(x)))


class OwnCall(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(4, 4)

    def __call__(self, x):
        return super().__call__(x)

    def forward(self, x):
        return self.inner(x)


class Net(nn.Module):
    def __init__(self, breaks=False):
        super().__init__()
        self.embed = nn.Embedding(10, 4)
        self.layers = nn.ModuleList(MLP() for _ in range(2))
        self.own = OwnCall()
        self.head = nn.Linear(4, 10)
        self.breaks = breaks

    def forward(self, ids):
        x = self.embed(ids)
        for layer in self.layers:
            x = layer(x)
            if self.breaks:
                torch._dynamo.graph_break()
        return self.head(self.own(x))


def ids(length):
    return torch.arange(2 * length).reshape(2, length) % 10


def digest(text):
    return hashlib.md5(text.encode()).hexdigest()


def comparable(log):
    """The lines of a log without addresses, UUIDs, times and other numbers that change at each run."""
    return [re.sub(r"0x[0-9a-f]+|(?<=_)[0-9a-f]{8}(_[0-9a-f]{4}){3}_[0-9a-f]{12}|\d+\.\d+|\b\d{5,}\b", "#", line) for line in log.splitlines()]


@contextlib.contextmanager
def traced_files(found):
    """Notes each function that Dynamo inlines, as engines do for the keys of their caches."""
    original = vars(InliningInstructionTranslator)["inline_call_"]
    old = isinstance(original, staticmethod)  # inline_call_(parent, function, ...), as in PyTorch 2.4
    call = original.__func__ if old else original

    def inline_call(*arguments):
        code = arguments[1].get_code() if old else arguments[0].f_code
        found.add(f"{os.path.relpath(code.co_filename, os.path.dirname(torch.__file__))}:{code.co_name}")
        return call(*arguments)

    InliningInstructionTranslator.inline_call_ = staticmethod(inline_call) if old else inline_call
    try:
        yield
    finally:
        InliningInstructionTranslator.inline_call_ = original


@contextlib.contextmanager
def logged(text):
    """What TORCH_LOGS=guards,recompiles,graph_breaks,graph_code would print."""
    handler = logging.StreamHandler(text)
    torch._logging.set_logs(guards=True, recompiles=True, graph_breaks=True, graph_code=True)
    logger = logging.getLogger("torch")
    others = [(name, log, log.handlers[:]) for name, log in logging.Logger.manager.loggerDict.items()
              if name.startswith("torch") and isinstance(log, logging.Logger) and log.handlers]
    for _, log, _ in others:
        log.handlers = [handler]
    logger.handlers = [handler]
    yield
    torch._logging.set_logs()
    for _, log, handlers in others:
        log.handlers = handlers


def compiled(model, fullgraph):
    torch._dynamo.reset()
    counters.clear()
    files, text = set(), io.StringIO()
    with traced_files(files), logged(text), torch.inference_mode():
        run = torch.compile(model, fullgraph=fullgraph, backend="eager")
        total = sum(run(ids(length)).sum().item() for length in (5, 5, 6, 7, 1))
    return {"files": sorted(files), "sum": total, "log": comparable(text.getvalue()),
            "counters": {kind: dict(count) for kind, count in counters.items()}}


def main():
    if "late" in sys.argv and "LATE_HOOK" in os.environ:
        spec = importlib.util.spec_from_file_location("lamina_torch", os.environ["LATE_HOOK"])
        hook = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(hook)
        hook.start()
    torch.manual_seed(0)
    model, breaking = Net().eval(), Net(breaks=True).eval()
    if "warm" in sys.argv:
        model(ids(5))
        breaking(ids(5))
    result = {"fullgraph": compiled(model, True), "breaks": compiled(breaking, False)}
    result["export"] = digest(str(torch.export.export(model, (ids(5),)).graph))
    symbolic = torch.fx.experimental.proxy_tensor.make_fx(model, tracing_mode="symbolic", _allow_non_fake_inputs=True)(ids(5))
    result["make_fx"] = digest(symbolic.code)
    result["fx"] = digest(torch.fx.symbolic_trace(model).code)
    result["trace"] = digest(str(torch.jit.trace(model, ids(5)).inlined_graph))
    print(json.dumps(result))


if __name__ == "__main__":
    main()
