#!/usr/bin/env python3
"""Module calls and steps as an NVTX tool sees them: modules_test.py --build BUILD [TEST...]

The cases of module_cases.py, step_cases.py and engine_cases.py run under the hook in LAMINA_TEST_PYTHON's interpreter.
"""
import json
import os
import re
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", ".."), os.path.join(HERE, "..")]
import hooked  # noqa: E402
import traced  # noqa: E402
from traced import check  # noqa: E402


def run_cases(suite, file):
    """{case: (what it returned, the ranges found of each thread)}"""
    done, events = hooked.run(suite, file, [os.path.join(HERE, file)], LAMINA_TORCH="modules")
    parts, name = {}, None
    for event in events:
        begins = re.fullmatch(r"Case_(\w+) @ Case_\w+", event[3]) if event[0] == "push" else None
        name = begins.group(1) if begins else name
        parts.setdefault(name, []).append(event)
    ranges = {case: hooked.trees(part, "lamina") for case, part in parts.items() if case}
    for threads in ranges.values():
        threads[0].pop(0)  # the case's own name
    return {case: (returned, [thread for thread in ranges[case] if thread]) for case, returned in json.loads(done.stdout).items()}


def compare(results):
    wrong = [f"{case}:\n{expected if isinstance(expected, str) else hooked.difference(expected, found)}"
             for case, (expected, found) in results.items() if expected != found]
    check(not wrong, "\n".join(wrong))
    print(f"    {len(results)} cases")


def test_modules(suite):
    results = run_cases(suite, "module_cases.py")
    compare({case: (expected if isinstance(expected, str) else sorted(expected), sorted(found))
             for case, (expected, found) in results.items()})


def test_steps(suite):
    results = run_cases(suite, "step_cases.py")
    steps = {case: [line for thread in found for line in thread if line.lstrip("|").startswith("execute_")]
             for case, (_, found) in results.items()}
    compare({case: (expected if isinstance(expected, str) else [expected], [steps[case]])
             for case, (expected, _) in results.items()})


def test_engines(suite):
    results = run_cases(suite, "engine_cases.py")
    compare({case: (expected if isinstance(expected, str) else [expected], found or [[]])
             for case, (expected, found) in results.items()})


if __name__ == "__main__":
    sys.exit(traced.main(globals()))
