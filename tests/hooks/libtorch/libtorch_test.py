#!/usr/bin/env python3
"""A LibTorch program in C++ that knows nothing of Lamina: libtorch_test.py --build BUILD [TEST...]

The injection library loads the observer that fits when CUDA starts, here on the simulated device. LAMINA_TEST_PROGRAM is
the program, LAMINA_TEST_PYTHON an interpreter with the same PyTorch, which writes the TorchScript file.
"""
import json
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", ".."), os.path.join(HERE, "..")]
import hooked  # noqa: E402
import traced  # noqa: E402
from traced import check  # noqa: E402

SCRIPT = """
import sys, torch
class Inner(torch.nn.Module):
    def forward(self, x): return torch.sin(x)
class Outer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = Inner()
    def forward(self, x): return self.inner(x) + 1
torch.jit.script(Outer()).save(sys.argv[1])
"""


def run(suite, name, **variables):
    script = suite.folder(name + ".pt")
    source = suite.folder("script.py")  # TorchScript reads it
    with open(source, "w", encoding="utf-8") as file:
        file.write(SCRIPT)
    suite.run([hooked.PYTHON, source, script])
    libraries = os.path.join(suite.build, "sim")
    profile, done = suite.record(name, [os.environ["LAMINA_TEST_PROGRAM"], script], LD_LIBRARY_PATH=libraries, **variables)
    texts = {entry["id"]: entry["text"] for entry in map(json.loads, suite.run([suite.lamina, "dump", profile]).stdout.splitlines())
             if entry["record"] == "string"}
    return done, set(texts.values())


def test_ops_and_modules(suite):
    done, texts = run(suite, "ops")
    check(done.stderr == "", done.stderr)
    for text in ("aten::mm(float32[2, 4], float32[4, 3])", "Mlp @ Mlp", "Inner @ Outer.inner", "aten::sin(float32[2, 4])"):
        check(text in texts, f"no {text} in {sorted(texts)}")


def test_off(suite):
    for wanted in ("off", "modules"):
        _, texts = run(suite, wanted, LAMINA_TORCH=wanted)
        check(not [text for text in texts if text.startswith("aten::")], str(sorted(texts)))


if __name__ == "__main__":
    sys.exit(traced.main(globals()))
