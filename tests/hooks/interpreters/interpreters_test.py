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

PROGRAM = """
import importlib.machinery, importlib.util, sys
path = sys.argv[1]
loader = importlib.machinery.ExtensionFileLoader("lamina_hook", path)
hook = importlib.util.module_from_spec(importlib.util.spec_from_file_location("lamina_hook", path, loader=loader))
loader.exec_module(hook)

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

hook.install(Module, Parameter, lambda module, callers: (type(module).__name__, f"d{len(callers)}", False))
for _ in range(50):  # so that the interpreter specialises the calls
    assert Outer()(3) == 8 and Outer().__call__(3) == 8 and Own()(3) == 8
    try:
        Outer()(1, times=1)
    except ValueError:
        pass
assert Module.__call__.__code__.co_name == "_call"
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


def test_calls(suite):
    versions = {version: path for version, path in pythons().items() if supported(version)}
    if not versions:
        raise Skip("no Python of 3.10 or newer in PATH")
    script = suite.folder("program.py")
    with open(script, "w", encoding="utf-8") as file:
        file.write(PROGRAM)
    library = os.path.join(suite.build, "lib", "lamina", "lamina_hook.abi3.so")
    for version, path in versions.items():
        env = hooked.environment(suite, suite.folder(version), LAMINA_TORCH="off")
        suite.run([path, script, library], env)
        with open(suite.folder(version), encoding="utf-8") as file:
            events = [tuple(line.rstrip("\n").split(" ", 3) + ["", ""])[:4] for line in file]
        lines = hooked.trees(events, "lamina")[0]
        calls = ["Outer @ d0", "|Inner @ d1", "Own @ d0", "|Inner @ d1", "Outer @ d0"]
        # Python 3.11 calls a method that is named in the code without asking where its function is to be entered.
        direct = ["Outer @ d0", "|Inner @ d1"]
        expected = 50 * (calls[:2] + ([] if version == "3.11" else direct) + calls[2:])
        shown = [line for line in lines]
        if version == "3.11":  # then only the module inside is seen, as a root
            shown = [line for line in lines if line != "Inner @ d0"]
        check(shown == expected, f"{version}: {hooked.difference([expected[:12]], [shown[:12]])}")
    print(f"    Python {', '.join(sorted(versions))}")


def test_start_up(suite):
    """Too old or not, an interpreter starts as without us."""
    code = "import sys; print('lamina_torch' in sys.modules)"
    for version, path in pythons().items():
        done = suite.run([path, "-c", code], hooked.environment(suite, suite.folder("start.nvtx")))
        check(done.stdout.strip() == str(supported(version)) and not done.stderr, f"{version}: {done.stdout}{done.stderr}")


if __name__ == "__main__":
    sys.exit(traced.main(globals()))
