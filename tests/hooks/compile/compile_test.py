#!/usr/bin/env python3
"""torch.compile and its kin with the hook: compile_test.py --build BUILD [TEST...]. Needs PyTorch 2.4 or newer.

The interpreter is LAMINA_TEST_PYTHON's.
"""
import difflib
import json
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", ".."), os.path.join(HERE, "..")]
import hooked  # noqa: E402
import traced  # noqa: E402
from traced import check  # noqa: E402

PROGRAM = os.path.join(HERE, "compile_program.py")
INDUCTOR = os.path.join(HERE, "inductor_program.py")


def without_hook(suite, arguments, **variables):
    return json.loads(suite.run([hooked.PYTHON] + arguments, dict(suite.clean, **variables)).stdout)


def with_hook(suite, name, arguments, torch="ops", **variables):
    done, events = hooked.run(suite, name, arguments, LAMINA_TORCH=torch, **variables)
    check("lamina" not in done.stderr, done.stderr)
    return json.loads(done.stdout), hooked.trees(events, "lamina")


def compare(bare, found):
    texts = [json.dumps(result, indent=1).splitlines() for result in (bare, found)]
    check(bare == found, "\n".join(difflib.unified_diff(*texts, "without", "with", lineterm="", n=0)))


def is_the_same(suite, *words):
    bare = without_hook(suite, [PROGRAM, *words])
    check(len(bare["fullgraph"]["log"]) > 50 and bare["fullgraph"]["counters"]["stats"]["unique_graphs"] > 1, str(bare))
    found, ranges = with_hook(suite, "-".join(("compile",) + words), [PROGRAM, *words])
    compare(bare, found)
    check(sum(map(len, ranges)) > 20, "the hook was not there")


def test_same_when_cold(suite):
    """The first call of every module comes from inside of a compiler."""
    is_the_same(suite)


def test_same_when_warm(suite):
    is_the_same(suite, "warm")


def test_same_when_late(suite):
    """The hook comes after Dynamo, at CUDA's start."""
    bare = without_hook(suite, [PROGRAM, "late"])
    env = hooked.environment(suite, suite.folder("late.nvtx"), LAMINA_TORCH="modules",
                             LATE_HOOK=os.path.join(suite.build, "lib", "lamina", "python", "lamina_torch.py"))
    del env["PYTHONPATH"]
    found = json.loads(suite.run([hooked.PYTHON, PROGRAM, "late"], env).stdout)
    compare(bare, found)
    check(os.path.getsize(suite.folder("late.nvtx")) > 1000, "the hook was not there")


def test_caches_are_shared(suite):
    """What was compiled without the hook is found with it: the keys are the same."""
    variables = {"TORCHINDUCTOR_CACHE_DIR": suite.folder("cache"), "TORCHINDUCTOR_FX_GRAPH_CACHE": "1",
                 "TORCHINDUCTOR_AUTOGRAD_CACHE": "1"}
    first = without_hook(suite, [INDUCTOR], **variables)
    second, _ = with_hook(suite, "caches", [INDUCTOR], **variables)
    check(first["sum"] == second["sum"], f"{first} {second}")
    check(sum(count for name, count in second.items() if name.endswith("_hit")) > 0, f"nothing was found again: {second}")
    check(not [name for name, count in second.items() if name.endswith("_miss") and count], f"compiled again: {second}")


def test_region_is_one_node(suite):
    """No module is called in a compiled region; those around it are exact, those after a graph break too."""
    _, ranges = with_hook(suite, "regions", [os.path.join(HERE, "region_program.py")], torch="modules")
    expected = ["Outer @ Outer", "|Linear(weight=float32[4, 4]) @ Outer.before", "|OptimizedModule @ Outer.compiled",
                "||MLP @ Outer.compiled._orig_mod", "|Linear(weight=float32[4, 4]) @ Outer.after"]
    # Up to PyTorch 2.4 the backend that this test uses calls copies of the modules in the region.
    main = [line for line in max(ranges, key=len) if "._orig_mod.(" not in line]
    check(main[-len(expected):] == expected, "\n".join(main))


if __name__ == "__main__":
    sys.exit(traced.main(globals()))
