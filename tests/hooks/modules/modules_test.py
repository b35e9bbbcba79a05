#!/usr/bin/env python3
"""Module calls and steps as an NVTX tool sees them: modules_test.py --build BUILD [TEST...]

Each case of module_cases.py and step_cases.py runs under the hook in an interpreter of its own, LAMINA_TEST_PYTHON's.
"""
import json
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", ".."), os.path.join(HERE, "..")]
import hooked  # noqa: E402
import traced  # noqa: E402
from traced import check  # noqa: E402


def ranges_of(suite, file, name):
    done, events = hooked.run(suite, name, [os.path.join(HERE, file), name], LAMINA_TORCH="modules")
    return json.loads(done.stdout), hooked.trees(events, "lamina")


def run_module_case(suite, name):
    expected, found = ranges_of(suite, "module_cases.py", name)
    check(sorted(found) == sorted(expected), hooked.difference(expected, found))


def run_step_case(suite, name):
    expected, found = ranges_of(suite, "step_cases.py", name)
    steps = [line for thread in found for line in thread if line.lstrip("|").startswith("execute_")]
    check(steps == expected, hooked.difference([expected], [steps]))


def case_names(file):
    with open(os.path.join(HERE, file), encoding="utf-8") as text:
        return [line[9:].split("(")[0] for line in text if line.startswith("def case_")]


for case in case_names("module_cases.py"):
    globals()[f"test_{case}"] = lambda suite, case=case: run_module_case(suite, case)
for case in case_names("step_cases.py"):
    globals()[f"test_steps_{case}"] = lambda suite, case=case: run_step_case(suite, case)


if __name__ == "__main__":
    sys.exit(traced.main(globals()))
