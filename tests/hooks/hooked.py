"""Runs Python programs under the PyTorch hook, with an NVTX tool that logs (nvtx_log.c), and reads what it saw."""
import difflib
import json
import os
import re

# The interpreter with PyTorch that the programs are run with.
PYTHON = os.environ.get("LAMINA_TEST_PYTHON", "python3")


def environment(suite, log, **variables):
    startup = os.path.join(suite.build, "lib", "lamina", "python", "startup")
    return dict(suite.clean, PYTHONPATH=startup, NVTX_INJECTION64_PATH=os.path.join(suite.build, "lib", "nvtx_log.so"),
                NVTX_LOG=log, **variables)


def run(suite, name, arguments, **variables):
    """(finished process, [(kind, domain, thread, text)]) of PYTHON with these arguments."""
    log = suite.folder(f"{name}.nvtx")
    done = suite.run([PYTHON] + arguments, environment(suite, log, **variables))
    if not os.path.exists(log):
        return done, []
    with open(log, encoding="utf-8") as file:
        return done, [tuple(line.rstrip("\n").split(" ", 3) + ["", ""])[:4] for line in file]


def trees(events, domain):
    """The ranges that each thread pushed, in order, with a `|` for each open one; fails where one is not popped."""
    threads = {}
    for kind, of_domain, thread, text in events:
        if of_domain != domain or kind not in ("push", "pop", "pop-empty"):
            continue
        lines, depth = threads.setdefault(thread, ([], 0))
        assert kind != "pop-empty", f"thread {thread}: a pop too many"
        if kind == "push":
            lines.append("|" * depth + text)
        threads[thread] = (lines, depth + (1 if kind == "push" else -1))
    unbalanced = {thread: depth for thread, (_, depth) in threads.items() if depth}
    assert not unbalanced, f"open at the end: {unbalanced}"
    return [lines for lines, _ in threads.values()]


def difference(expected, found):
    texts = ["\n".join("\n".join(thread) for thread in threads).splitlines() for threads in (expected, found)]
    return "\n".join(difflib.unified_diff(*texts, "expected", "found", lineterm="", n=1))


def run_cases(suite, name, path, **variables):
    """Runs a file of cases (modules/cases.py): {case: (what it returned, the ranges found of each thread)}"""
    done, events = run(suite, name, [path], **variables)
    parts, case = {}, None
    for event in events:
        begins = re.fullmatch(r"Case_(\w+) @ Case_\w+", event[3]) if event[0] == "push" else None
        case = begins.group(1) if begins else case
        parts.setdefault(case, []).append(event)
    ranges = {case: trees(part, "lamina") for case, part in parts.items() if case}
    for threads in ranges.values():
        threads[0].pop(0)  # the case's own name
    return {case: (returned, [thread for thread in ranges[case] if thread]) for case, returned in json.loads(done.stdout).items()}


def compare_cases(results):
    """{case: (ranges expected or what went wrong, ranges found)}"""
    wrong = [f"{case}:\n{expected if isinstance(expected, str) else difference(expected, found)}"
             for case, (expected, found) in results.items() if expected != found]
    assert not wrong, "\n".join(wrong)
    print(f"    {len(results)} cases")
