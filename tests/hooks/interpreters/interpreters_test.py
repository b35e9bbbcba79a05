#!/usr/bin/env python3
"""The hook's extension and its start-up in every Python that is found here, without PyTorch: interpreters_test.py --build BUILD

A class that is called as nn.Module is stands for it.
"""
import glob
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", ".."), os.path.join(HERE, "..")]
import hooked  # noqa: E402
import traced  # noqa: E402
from traced import Skip, check  # noqa: E402

LOAD_HOOK = """
import importlib.machinery, importlib.util, sys
path = sys.argv[1]
loader = importlib.machinery.ExtensionFileLoader("lamina_hook", path)
hook = importlib.util.module_from_spec(importlib.util.spec_from_file_location("lamina_hook", path, loader=loader))
loader.exec_module(hook)
"""

MODULE_CALLS = LOAD_HOOK + """

class Parameter: pass
class Module:
    def _call(self, value, times=0): return self.forward(value, times)
    __call__ = _call
    def __setattr__(self, name, value): object.__setattr__(self, name, value)
class Inner(Module):
    def forward(self, value, times): return value + 1
class Outer(Module):
    def __init__(self): self.inner = Inner()
    def forward(self, value, times):
        if times: raise ValueError
        return self.inner(value=value) * 2
class Own(Outer):
    def __call__(self, value): return super().__call__(value)

hook.install(Module, Parameter, lambda decodes: None, ())
for _ in range(50):  # so that the interpreter specialises the calls
    assert Outer()(3) == 8 and Outer().__call__(3) == 8 and Own()(3) == 8
    try:
        Outer()(1, times=1)
    except ValueError:
        pass
assert Module.__call__.__code__.co_name == "_call"
"""


EXTENSION_CALLS = LOAD_HOOK + """
sys.path.insert(0, sys.argv[2])
import _imp
import raw_ops

def call_all(times):
    for _ in range(times):  # so that the interpreter specialises the calls
        assert raw_ops.nothing() == [] and raw_ops.one(1) == [1] and raw_ops.tuple(1, 2.0) == [1, 2.0]
        assert raw_ops.tuple_named(1, k="x") == [1, ("k", "x")] and raw_ops.fast(1, None) == [1, None]
        assert raw_ops.fast_named((1,), k=[]) == [(1,), ("k", [])] and raw_ops.fast_named(*(1,), **{}) == [1]
        try:
            raw_ops.fail(KeyError, "k")
        except KeyError as error:
            assert error.args == ("k",)

call_all(50)
functions = [value for value in vars(raw_ops).values() if type(value) is type(len)]
hashes = list(map(hash, functions))
loaded = []
hook.watch_extensions(loaded.append)
for function in functions:
    if function.__name__ not in ("fixed", "sqrt"):
        assert hook.hook_extension_function(function, function.__name__, "f.so")
        assert not hook.hook_extension_function(function, "twice", "f.so")
try:
    hook.hook_extension_function(raw_ops.fixed, "fixed", "f.so")
    raise SystemExit("memory that can not be written was written")
except RuntimeError:
    pass
for other in (lambda: 0, str.lower, type, 1):
    try:
        hook.hook_extension_function(other, "other", "f.so")
        raise SystemExit(f"{other} was hooked")
    except RuntimeError:
        pass
call_all(50)
assert hashes == list(map(hash, functions)) and hash(_imp.exec_dynamic) == hash(_imp.exec_dynamic)
import cpu_ops
assert loaded == [cpu_ops], loaded
"""


def pythons():
    """{version: path} of the interpreters in PATH and in pyenv's folder."""
    folders = os.environ.get("PATH", "").split(":") + glob.glob(os.path.expanduser("~/.pyenv/versions/*/bin"))
    found = {}
    for folder in folders:
        for path in glob.glob(os.path.join(folder, "python[23]*")):
            name = os.path.basename(path)
            if name[6:].replace(".", "").isdigit() and "." in name and "shims" not in path:
                found.setdefault(name[6:], path)
    return found


def supported(version):
    major, minor = map(int, version.split("."))
    return (major, minor) >= (3, 10)


def lines_in_each(suite, name, program, *arguments):
    """Runs the program in every Python that the hook is for: {version: the ranges found}"""
    versions = {version: path for version, path in pythons().items() if supported(version)}
    if not versions:
        raise Skip("no Python of 3.10 or newer in PATH")
    script = suite.folder(f"{name}.py")
    with open(script, "w", encoding="utf-8") as file:
        file.write(program)
    library = os.path.join(suite.build, "lib", "lamina", "lamina_hook.abi3.so")
    found = {}
    for version, path in versions.items():
        log = suite.folder(f"{name}-{version}")
        suite.run([path, script, library, *arguments], hooked.environment(suite, log, LAMINA_TORCH="off"))
        with open(log, encoding="utf-8") as file:
            events = [tuple(line.rstrip("\n").split(" ", 3) + ["", ""])[:4] for line in file]
        found[version] = hooked.trees(events, "lamina")[0]
    print(f"    Python {', '.join(sorted(versions))}")
    return found


def test_calls(suite):
    for version, lines in lines_in_each(suite, "modules", MODULE_CALLS).items():
        calls = ["Outer @ Outer", "|Inner @ Outer.(Inner)", "Own @ Own", "|Inner @ Own.(Inner)", "Outer @ Outer"]
        # Python 3.11 calls a method that is named in the code without asking where its function is to be entered.
        direct = calls[:2]
        expected = 50 * (calls[:2] + ([] if version == "3.11" else direct) + calls[2:])
        shown = [line for line in lines]
        if version == "3.11":  # then only the module inside is seen, as a root
            shown = [line for line in lines if line != "Inner @ Inner"]
        check(shown == expected, f"{version}: {hooked.difference([expected[:12]], [shown[:12]])}")


def test_extension_calls(suite):
    """Functions of each kind, hooked after the interpreter has specialised their calls."""
    calls = ["nothing()", "one(int)", "tuple(int, float)", "tuple_named(int, k='x')", "fast(int, None)", "fast_named((int), k=[])",
             "fast_named(int)", "fail(type, 'k')"]
    expected = [f"{call} <- f.so" for call in calls] * 50
    found = lines_in_each(suite, "extensions", EXTENSION_CALLS, os.path.join(suite.build, "lib", "extensions"))
    for version, lines in found.items():
        check(lines == expected, f"{version}: {hooked.difference([expected[:12]], [lines[:12]])}")


def test_start_up(suite):
    """Too old or not, an interpreter starts as without us."""
    code = "import sys; print('lamina_torch' in sys.modules)"
    for version, path in pythons().items():
        done = suite.run([path, "-c", code], hooked.environment(suite, suite.folder("start.nvtx")))
        check(done.stdout.strip() == str(supported(version)) and not done.stderr, f"{version}: {done.stdout}{done.stderr}")


def test_frames(suite):
    """What the recorder reads of a thread's Python frames is what Python says."""
    program, probe = os.path.join(HERE, "frames_program.py"), os.path.join(suite.build, "lib", "python_frames_probe.so")
    for version, path in pythons().items():
        if supported(version):
            done = suite.run([path, program, probe])
            check(int(done.stdout) > 1000, f"{version}: {done.stdout}")


LAUNCHES = """{module}run
tokens
tokens.<locals>.<lambda>
forward
Layer.__call__
Layer.attention
launch
gemm
Layer.mlp
launch
gemm"""


def launched_tree(suite, version, path, mode, *table):
    """The rows of what launching_program.py launched, and of which is said where it was launched from."""
    program = os.path.join(HERE, "launching_program.py")
    profile, done = suite.record(f"launches-{version}-{mode}", [path, program, mode], LAMINA_TORCH="off",
                                 LD_LIBRARY_PATH=os.path.join(suite.build, "sim"))
    check(not done.stderr, done.stderr)
    rows = suite.run([suite.lamina, "table", profile, "--names", "full", *table]).stdout.splitlines()[2:]
    return [[cell.strip("|- ") for cell in row.split(" | ")] for row in rows]


def test_launches(suite):
    """Kernels that no range explains stand below the functions in Python that launched them."""
    for version, path in pythons().items():
        if not supported(version):
            continue
        for mode, module in {"plain": "<module>\n", "threads": "", "exit": ""}.items():
            names = [row[0].replace(" (launching_program.py)", "").split("(float")[0] for row in launched_tree(suite, version, path, mode)]
            expected = LAUNCHES.format(module=module)
            if version == "3.10":  # has no qualified names
                expected = expected.replace("tokens.<locals>.", "").replace("Layer.", "")
            check(names == expected.split("\n"), f"{version} {mode}: {names}")
        rows = launched_tree(suite, version, path, "plain", "--table", "model")
        with open(os.path.join(HERE, "launching_program.py"), encoding="utf-8") as file:
            line = 1 + file.read().split("library.cuLaunchKernel")[0].count("\n")
        traces = {row[4] for row in rows if row[0] == "gemm(float*)"}
        check(len(traces) == 2 and all(f"launch (launching_program.py:{line}) <- " in trace for trace in traces), f"{version}: {traces}")


def test_deep_and_odd(suite):
    for version, path in pythons().items():
        if supported(version):
            names = [row[0] for row in launched_tree(suite, version, path, "deep")]
            check(names == [f"{name} (launching_program.py)" for name in ("<module>", "deep", "launch")] + ["gemm(float*)"], f"{version}: {names}")
            names = [row[0].split(" ")[0] for row in launched_tree(suite, version, path, "throw")]
            check(names == ["<module>", "throw", "outer", "middle", "inner", "launch", "gemm(float*)"], f"{version}: {names}")
            names = [row[0] for row in launched_tree(suite, version, path, "odd")]
            check("odd_name (odd.py)" in names, f"{version}: {names}")


def test_threads_at_the_end_of_python(suite):
    """Their states are freed while they launch: at any time, and when a thread has just found its own."""
    probe = os.path.join(suite.build, "lib", "python_frames_probe.so")
    for version, path in pythons().items():
        if supported(version):
            for mode, preloaded in {"end": {}, "caught": {"LD_PRELOAD": probe}}.items():
                command = [path, "-X", "dev", os.path.join(HERE, "launching_program.py"), mode, probe]
                suite.record(f"{mode}-{version}", command, LAMINA_TORCH="off", LD_LIBRARY_PATH=os.path.join(suite.build, "sim"), **preloaded)


def test_functions_made_anew(suite):
    """Code in the place of code that was freed is told apart."""
    for version, path in pythons().items():
        if supported(version):
            rows = launched_tree(suite, version, path, "made", "--stacks", "full")
            found = {row[0] for row in rows if row[0].startswith("made_")}
            expected = {f"made_{i // 10 % 10} (file_{i // 100}.py:{i % 10 + 2})" for i in range(1000)}
            check(found == expected, f"{version}: {expected - found}, {found - expected}")


if __name__ == "__main__":
    sys.exit(traced.main(globals()))
