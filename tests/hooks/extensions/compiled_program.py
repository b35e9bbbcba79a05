"""What torch.compile makes of functions that call extensions, as JSON: must be the same with and without the hook."""
import json
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = os.environ["EXTENSIONS"].split(":") + [os.path.join(HERE, "..", "compile")]
import pb2_ops  # noqa: E402
import raw_ops  # noqa: E402
import torch  # noqa: E402
from torch import nn  # noqa: E402

import nb_ops  # noqa: E402
import pb3_ops  # noqa: E402
from compile_program import compiled  # noqa: E402


class Net(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function
        self.embed = nn.Embedding(10, 4)

    def forward(self, ids):
        x = self.embed(ids) * 2
        x = self.function(x) + 1
        return x * 2


def raw(x):
    return raw_ops.one(x)[0] + raw_ops.fast(x)[0] + raw_ops.tuple(x)[0] + raw_ops.tuple_named(x, k=x)[0]


@torch._dynamo.allow_in_graph
def allowed(x):
    return raw_ops.one(x)[0]


torch.manual_seed(0)
result = {module.__name__: compiled(Net(module.one), False) for module in (pb2_ops, pb3_ops, nb_ops)}
result["raw"] = compiled(Net(raw), False)
result["allowed"] = compiled(Net(allowed), True)
print(json.dumps(result))
