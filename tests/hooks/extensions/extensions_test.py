#!/usr/bin/env python3
"""Calls of extension functions as an NVTX tool sees them: extensions_test.py --build BUILD [TEST...]

The interpreter is LAMINA_TEST_PYTHON's; LAMINA_TEST_EXTENSIONS has the folders of the modules built for it.
"""
import difflib
import json
import os
import random
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", ".."), os.path.join(HERE, "..")]
import hooked  # noqa: E402
import traced  # noqa: E402
from traced import Skip, check  # noqa: E402

EXTENSIONS = os.environ.get("LAMINA_TEST_EXTENSIONS", "")
CALLS = ("import os, sys; sys.path[:0] = os.environ['EXTENSIONS'].split(':'); import torch, pb2_ops, cpu_ops, raw_ops\n"
         "pb2_ops.one(1); pb2_ops.sub.one(1); cpu_ops.one(1); raw_ops.one(1); raw_ops.fast(1)\n")


def run(suite, name, arguments, **variables):
    return hooked.run(suite, name, arguments, EXTENSIONS=EXTENSIONS, **dict({"LAMINA_TORCH": "modules"}, **variables))


def ranges(suite, name, code, **variables):
    done, events = run(suite, name, ["-c", code], **variables)
    return done, [line for thread in hooked.trees(events, "lamina") for line in thread]


def program(name):
    return [os.path.join(HERE, name)]


def without_hook(suite, arguments, **variables):
    env = dict(suite.clean, EXTENSIONS=EXTENSIONS, **variables)
    return json.loads(suite.run([hooked.PYTHON] + arguments, env).stdout)


def compare(bare, found):
    texts = [json.dumps(result, indent=1).splitlines() for result in (bare, found)]
    check(bare == found, "\n".join(difflib.unified_diff(*texts, "without", "with", lineterm="", n=1)))


def test_calls(suite):
    path = os.path.join(HERE, "extension_cases.py")
    results = hooked.run_cases(suite, "cases", path, LAMINA_TORCH="modules", EXTENSIONS=EXTENSIONS)
    hooked.compare_cases({case: (expected if isinstance(expected, str) else [thread for thread in expected if thread], found)
                          for case, (expected, found) in results.items()})


def test_nothing_is_changed(suite):
    """Names, docs, signatures, hashes, pickles, exceptions with their tracebacks, recursion, profilers, reference counts."""
    bare = without_hook(suite, program("facts_program.py"))
    done, events = run(suite, "facts", program("facts_program.py"))
    compare(bare, json.loads(done.stdout))
    check(sum(map(len, hooked.trees(events, "lamina"))) > 1000, "the hook was not there")
    print(f"    {len(bare)} facts")


def test_nothing_leaks(suite):
    done, _ = run(suite, "memory", program("memory_program.py"), NVTX_LOG_QUIET="1")
    check(int(done.stdout) < 2000, f"{done.stdout.strip()} kB more after 50,000 more calls")
    print(f"    {done.stdout.strip()} kB")


def test_compiled(suite):
    """Graphs, graph breaks, guards and counters of torch.compile are the same."""
    version = suite.run([hooked.PYTHON, "-c", "import torch; print(torch.__version__)"]).stdout
    if int(version.split(".")[0]) < 2:
        raise Skip(f"PyTorch {version.strip()} has no torch.compile here")
    bare = without_hook(suite, program("compiled_program.py"))
    counters = {name: result["counters"] for name, result in bare.items()}
    check(all("graph_break" in counters[name] for name in ("pb2_ops", "pb3_ops", "nb_ops", "raw")), str(counters))
    check("graph_break" not in counters["allowed"] and counters["allowed"]["stats"]["unique_graphs"], str(counters))
    done, events = run(suite, "compiled", program("compiled_program.py"), LAMINA_TORCH="ops")
    compare(bare, json.loads(done.stdout))
    lines = [line for thread in hooked.trees(events, "lamina") for line in thread]
    for module in ("pb2_ops", "pb3_ops", "nb_ops", "raw_ops"):
        check(any(f"{module}.one(float32[2, 5, 4]) <- {module}.so" in line for line in lines), f"{module} was not hooked")


def test_ops_inside(suite):
    """Ops that an extension calls are inside of its range."""
    _, found = ranges(suite, "ops", CALLS + "x = torch.ones(2); raw_ops.call(torch.neg, x)", LAMINA_TORCH="ops")
    at = found.index("raw_ops.call(builtin_function_or_method, float32[2]) <- raw_ops.so")
    check(found[at + 1:] == ["|aten::neg(float32[2])"], str(found[at:]))


def test_hooked_late(suite):
    """At CUDA's start, into a running program. A module that waits for its first use goes on waiting."""
    code = CALLS + """
import importlib.util
def load(name, file=None, lazy=False):
    spec = importlib.util.spec_from_file_location(name, file) if file else importlib.util.find_spec(name)
    spec.loader = importlib.util.LazyLoader(spec.loader) if lazy else spec.loader
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
waiting = load("wave", lazy=True)
early, hashed = raw_ops.fast, {raw_ops.fast: 1, pb2_ops.one: 2}
load("lamina_torch", os.environ["LATE_HOOK"]).start()
print(type(waiting) is type(sys))
pb2_ops.one(2.5), early("late")
print(hashed[raw_ops.fast], hashed[pb2_ops.one])
"""
    env = hooked.environment(suite, suite.folder("late.nvtx"), LAMINA_TORCH="modules", EXTENSIONS=EXTENSIONS,
                             LATE_HOOK=os.path.join(suite.build, "lib", "lamina", "python", "lamina_torch.py"))
    del env["PYTHONPATH"]
    done = suite.run([hooked.PYTHON, "-c", code], env)
    check(done.stdout.split() == ["False", "1", "2"], done.stdout)
    with open(suite.folder("late.nvtx"), encoding="utf-8") as file:
        pushes = [line.split(" ", 3)[3].strip() for line in file if line.startswith("push lamina")]
    check(pushes == ["pb2_ops.one(float) <- pb2_ops.so", "raw_ops.fast('late') <- raw_ops.so"], str(pushes))


def test_which_functions(suite):
    one, sub, raw, fast, cpu = ("pb2_ops.one(int) <- pb2_ops.so", "pb2_ops.sub.one(int) <- pb2_ops.so", "raw_ops.one(int) <- raw_ops.so",
                                "raw_ops.fast(int) <- raw_ops.so", "cpu_ops.one(int) <- cpu_ops.so")
    for globs, expected in {"": [one, sub, raw, fast], "off": [], "pb2_ops.*": [one, sub], "*.one": [one, sub, cpu, raw],
                            "raw_ops.fast, cpu_*": [cpu, fast], "torch.*": [], "nothing.*": []}.items():
        done, found = ranges(suite, "which", CALLS, LAMINA_EXT=globs)
        check(found == expected and not done.stderr, f"{globs}: {found} {done.stderr}")


def test_lines_for_debugging(suite):
    """Silent but for LAMINA_LOG=debug, which tells what has ranges and what has none."""
    done, _ = ranges(suite, "debug", CALLS, LAMINA_LOG="debug")
    for line in ("raw_ops.one of raw_ops.so has ranges", "raw_ops.fixed of raw_ops.so has no ranges: ", "can not be written"):
        check(line in done.stderr, f"{line}:\n{done.stderr}")
    check("cpu_ops" not in done.stderr and "torch._C" not in done.stderr and "sqrt" not in done.stderr, done.stderr)


def test_same_imports(suite):
    """What a program sees of the import system is as without us."""
    code = CALLS + ("import _imp, importlib.machinery as m, importlib._bootstrap_external as b\n"
                    "print(sys.path_hooks, sys.meta_path, _imp.exec_dynamic, [f for f in vars(m.ExtensionFileLoader).values()],"
                    "raw_ops.__loader__, raw_ops.__spec__, hash(_imp.exec_dynamic) == hash(_imp.exec_dynamic))")
    texts = [suite.run([hooked.PYTHON, "-c", code], dict(suite.clean, EXTENSIONS=EXTENSIONS)).stdout,
             run(suite, "imports", ["-c", code])[0].stdout]
    bare, found = (sorted(word for word in text.split() if "0x" not in word) for text in texts)
    check(bare == found, f"{texts[0]}\n{texts[1]}")


def test_files_of_any_content(suite):
    """Whether a library uses CUDA is asked of any file that is imported."""
    sys.path.insert(0, os.path.join(suite.build, "lib", "lamina", "python"))
    sys.dont_write_bytecode = True
    from lamina_extensions import uses_cuda  # pylint: disable=import-outside-toplevel,import-error

    def built(name):
        return next(path for folder in EXTENSIONS.split(":") for path in [os.path.join(folder, name)] if os.path.exists(path))

    check([uses_cuda(built(name + "_ops.so")) for name in ("raw", "pb2", "pb3", "nb", "cpu")] == [True] * 4 + [False], "built here")
    check(not uses_cuda("/nowhere") and not uses_cuda(HERE) and not uses_cuda(__file__), "no library")
    with open(built("nb_ops.so"), "rb") as file:
        whole = file.read()
    chance, path = random.Random(1), suite.folder("any.so")
    for turn in range(600):
        content = bytearray(whole[: chance.randrange(len(whole))] if turn % 4 == 0 else whole)
        for _ in range(chance.randrange(8)):
            # The header, and the headers of sections at the end.
            place = chance.choice((chance.randrange(64), len(content) - 1 - chance.randrange(3000)))
            if 0 <= place < len(content):
                content[place] = chance.choice((0, 1, 127, 255, chance.randrange(256)))
        with open(path, "wb") as file:
            file.write(content)
        check(uses_cuda(path) in (True, False), "neither yes nor no")


if __name__ == "__main__":
    sys.exit(traced.main(globals()))
