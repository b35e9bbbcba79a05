"""Nanoseconds an op, and what observing it adds:
  PYTHON bench_ops.py LIBRARY NVTX_LOG_LIBRARY EMPTY_CALLBACK_LIBRARY [ROUNDS]
Each way is measured in a process of its own, in turns; the median of the rounds is shown. `no tool`: started without a
tool attached to NVTX. The tool of the others takes the calls and drops them."""
import ctypes
import os
import statistics
import subprocess
import sys
import time

OPS = {
    "add_(f32[1], f32[1])": lambda torch, a, b, m: lambda: a.add_(b),
    "mm(f32[2, 2], f32[2, 2])": lambda torch, a, b, m: lambda: torch.mm(m, m),
    "view(f32[2, 2], [4, 1])": lambda torch, a, b, m: lambda: m.view(4, 1),
    "cat([5 of f32[2, 2]])": lambda torch, a, b, m: lambda: torch.cat([m, m, m, m, m]),
    "conv2d": lambda torch, a, b, m: lambda: torch.conv2d(M4, M4),  # several ops inside of each other
}


def measure(way, library):
    import torch
    global M4
    torch.set_num_threads(1)
    if library:
        started = ctypes.CDLL(library).lamina_ops_start()
        assert started == (1 if way == "no tool" else 0), started
    a, b, m, M4 = torch.ones(1), torch.ones(1), torch.ones(2, 2), torch.ones(1, 1, 2, 2)
    context = torch.autograd.profiler.emit_nvtx(record_shapes=True) if way == "emit_nvtx" else torch.no_grad()
    with torch.no_grad(), context:
        for name, make in OPS.items():
            run = make(torch, a, b, m)
            print(name, min(batch(run) for _ in range(9)), sep="\t")


def batch(run, calls=4000):
    begin = time.thread_time_ns()
    for _ in range(calls):
        run()
    return (time.thread_time_ns() - begin) / calls


def in_a_process(way, library, log):
    env = {name: value for name, value in os.environ.items() if not name.startswith("NVTX_")}
    if way != "no tool":
        env.update(NVTX_INJECTION64_PATH=log, NVTX_LOG_QUIET="1")
    done = subprocess.run([sys.executable, "-W", "ignore", __file__, "--measure", way, library], env=env,
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    if done.returncode:
        return None
    return {name: float(ns) for name, ns in (line.split("\t") for line in done.stdout.splitlines())}


def main():
    library, log, empty = (os.path.abspath(path) for path in sys.argv[1:4])
    rounds = sys.argv[4:]
    ways = {"bare": "", "no tool": library, "empty callback": empty, "lamina": library, "emit_nvtx": ""}
    results = {way: [] for way in ways}
    for _ in range(int(rounds[0]) if rounds else 7):
        for way, path in ways.items():
            result = in_a_process(way, path, log)
            if result:
                results[way].append(result)
    print(f"{'ns an op':28}" + "".join(f"{way:>16}" for way in ways) + f"{'lamina adds':>14}{'on the empty':>14}")
    for name in OPS:
        ns = {way: statistics.median(row[name] for row in rows) if rows else None for way, rows in results.items()}
        cells = "".join(f"{ns[way]:16.0f}" if ns[way] else f"{'-':>16}" for way in ways)
        print(f"{name:28}{cells}{ns['lamina'] - ns['bare']:14.0f}{ns['lamina'] - ns['empty callback']:14.0f}")


if __name__ == "__main__":
    measure(*sys.argv[2:]) if sys.argv[1] == "--measure" else main()
