"""A compiled module among others: calls it until it is compiled, and once more."""
import json
import warnings

import torch
from compile_program import MLP
from torch import nn

warnings.filterwarnings("ignore")


class Outer(nn.Module):
    def __init__(self):
        super().__init__()
        self.before = nn.Linear(4, 4, bias=False)
        self.compiled = torch.compile(MLP(), backend="eager", fullgraph=True)
        self.after = nn.Linear(4, 4, bias=False)

    def forward(self, x):
        return self.after(self.compiled(self.before(x)))


outer = Outer()
with torch.inference_mode():
    for _ in range(3):
        outer(torch.ones(2, 4))
print(json.dumps({}))
