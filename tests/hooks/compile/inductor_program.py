"""Compiles a model with Inductor and runs it: prints how often the compile caches were hit and missed, and the result."""
import json
import warnings

import torch
from compile_program import MLP
from torch._dynamo.utils import counters

warnings.filterwarnings("ignore")
torch.manual_seed(0)
run = torch.compile(MLP().eval())
with torch.inference_mode():
    total = run(torch.ones(2, 4)).sum().item()
names = ("fxgraph_cache_hit", "fxgraph_cache_miss", "autograd_cache_hit", "autograd_cache_miss")
caches = {name: count[name] for count in counters.values() for name in names if name in count}
print(json.dumps({"sum": total, **caches}))
