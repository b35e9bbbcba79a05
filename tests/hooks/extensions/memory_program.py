"""100,000 calls of each kind of function: prints how many kB the process grew by in the second half of them."""
import gc
import os
import sys

sys.path[:0] = os.environ["EXTENSIONS"].split(":")
import pb2_ops  # noqa: E402
import raw_ops  # noqa: E402
import torch  # noqa: E402

import nb_ops  # noqa: E402
import pb3_ops  # noqa: E402


def resident():
    gc.collect()
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") // 1024


def call_all(times):
    x, y, many = torch.ones(2, 3), torch.ones(4, dtype=torch.bfloat16), [torch.ones(1)] * 9
    for i in range(times):
        raw_ops.one(x), raw_ops.fast(x, y, many), raw_ops.tuple(x, i), raw_ops.tuple_named(x, k=str(i)), raw_ops.nothing()
        for module in (pb2_ops, pb3_ops, nb_ops):
            module.take(x, y, k=many), module.scale(x, mode=f"mode {i}"), module.one(torch.empty(i % 1000))
            try:
                module.fail("value")
            except ValueError:
                pass


call_all(50000)
before = resident()
call_all(50000)
print(resident() - before)
