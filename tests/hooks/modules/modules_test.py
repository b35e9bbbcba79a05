#!/usr/bin/env python3
"""Module calls and steps as an NVTX tool sees them: modules_test.py --build BUILD [TEST...]

The cases of module_cases.py, step_cases.py and engine_cases.py run under the hook in LAMINA_TEST_PYTHON's interpreter.
"""
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", ".."), os.path.join(HERE, "..")]
import hooked  # noqa: E402
import traced  # noqa: E402


def run_cases(suite, file):
    return hooked.run_cases(suite, file, os.path.join(HERE, file), LAMINA_TORCH="modules")


def test_modules(suite):
    results = run_cases(suite, "module_cases.py")
    hooked.compare_cases({case: (expected if isinstance(expected, str) else sorted(expected), expected if expected == "any" else sorted(found))
             for case, (expected, found) in results.items()})


def test_steps(suite):
    results = run_cases(suite, "step_cases.py")
    steps = {case: [line for thread in found for line in thread if line.lstrip("|").startswith("execute_")]
             for case, (_, found) in results.items()}
    hooked.compare_cases({case: (expected if isinstance(expected, str) else [expected], [steps[case]])
             for case, (expected, _) in results.items()})


def test_engines(suite):
    results = run_cases(suite, "engine_cases.py")
    hooked.compare_cases({case: (expected if isinstance(expected, str) else [expected], found or [[]])
             for case, (expected, found) in results.items()})


if __name__ == "__main__":
    sys.exit(traced.main(globals()))
