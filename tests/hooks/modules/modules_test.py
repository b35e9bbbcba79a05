#!/usr/bin/env python3
"""Module calls as an NVTX tool sees them: modules_test.py --build BUILD [--python PYTHON] [TEST...]

Each case of module_cases.py runs under the hook in an interpreter of its own, with PyTorch; PYTHON is the one to take.
"""
import json
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", ".."), os.path.join(HERE, "..")]
import hooked  # noqa: E402
import traced  # noqa: E402
from traced import check  # noqa: E402


def run_case(suite, name):
    done, events = hooked.run(suite, name, [os.path.join(HERE, "module_cases.py"), name], LAMINA_TORCH="modules")
    expected = json.loads(done.stdout)
    found = hooked.trees(events, "lamina")
    check(sorted(found) == sorted(expected), hooked.difference(expected, found))


def case_names():
    with open(os.path.join(HERE, "module_cases.py"), encoding="utf-8") as file:
        return [line[9:].split("(")[0] for line in file if line.startswith("def case_")]


for case in case_names():
    globals()[f"test_{case}"] = lambda suite, case=case: run_case(suite, case)


if __name__ == "__main__":
    sys.exit(traced.main(globals()))
