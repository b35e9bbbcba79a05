"""A compiled stack of blocks between two modules that are not: torch_compiled.py [MODE]

MODE of torch.compile: default, or reduce-overhead (CUDA graph trees). The phase `warm-up` compiles and records; `steps` runs two
batch sizes in turn, three times each. Prints a checksum.
"""
import sys

import torch
from torch import nn


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.up = nn.Linear(width, 4 * width)
        self.down = nn.Linear(4 * width, width)

    def forward(self, hidden):
        return hidden + self.down(nn.functional.gelu(self.up(self.norm(hidden))))


class Blocks(nn.Module):
    def __init__(self, width, count):
        super().__init__()
        self.list = nn.ModuleList(Block(width) for _ in range(count))

    def forward(self, hidden):
        for block in self.list:
            hidden = block(hidden)
        return hidden


class Net(nn.Module):
    def __init__(self, width=512, count=4):
        super().__init__()
        self.first = nn.Linear(width, width)
        self.blocks = Blocks(width, count)
        self.last = nn.Linear(width, 16)

    def forward(self, values):
        return self.last(self.blocks(self.first(values)))


torch.manual_seed(0)
model = Net().cuda().half()
model.blocks.compile(mode=sys.argv[1], dynamic=False)
batches = [torch.randn(size, 512, device="cuda", dtype=torch.half) for size in (8, 32)]
total = 0.0
with torch.inference_mode():
    for phase, rounds in (("warm-up", 4), ("steps", 3)):
        torch.cuda.nvtx.range_push(f"phase:{phase}")
        for _ in range(rounds):
            for batch in batches:
                total += model(batch).float().abs().sum().item()
        torch.cuda.nvtx.range_pop()
print(f"checksum {total:.3f}")
