#!/usr/bin/env python3
"""Compares where `lamina dump` puts each GPU activity with what a traced program said it must be.

Usage: compare_dump.py EXPECTATION DUMP
EXPECTATION: JSON lines {"phase", "path", "kind", "name", "count"}; lines with "skipped" are passed over. Besides
kernel, memcpy and memset a kind may be `below` (a kernel anywhere under the path) or `internal` (a kernel of the
driver's own, which belongs to no phase).
DUMP: output of `lamina dump`.
Prints each difference; exit status 1 when there is one.
"""
import collections
import json
import re
import sys


def short_name(kind, name):
    """Kernel without arguments and return type; memory operations without the memory kinds."""
    if kind == "memcpy":
        return " ".join(name.split()[:2])
    if kind == "memset":
        return "Memset"
    return re.sub(r"^(void|int) ", "", name.split("(")[0]).strip()


def read_lines(path):
    with open(path, encoding="utf-8", errors="replace") as file:
        return [json.loads(line) for line in file if line.startswith("{")]


def key(entry, kind):
    return entry["phase"], tuple(entry["path"]), kind, short_name(kind, entry["name"])


def count_expected(path):
    counts = collections.Counter()
    for entry in read_lines(path):
        if "skipped" in entry:
            continue
        if entry["kind"] == "internal":
            entry.update(phase="(none)", path=["(driver)"], kind="kernel")
        counts[key(entry, entry["kind"])] += entry["count"]
    return counts


def count_dumped(path):
    counts = collections.Counter()
    for entry in read_lines(path):
        if entry["record"] in ("kernel", "memcpy", "memset"):
            counts[key(entry, entry["record"])] += 1
    return counts


def settle_below(expected, dumped):
    """Takes off what a `below` row and kernels under its path have in common."""
    for entry in [entry for entry in expected if entry[2] == "below"]:
        phase, path, _, name = entry
        for other in list(dumped):
            if other[0] == phase and other[3] == name and other[1][: len(path)] == path:
                common = min(expected[entry], dumped[other])
                expected[entry] -= common
                dumped[other] -= common


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    expected, dumped = count_expected(sys.argv[1]), count_dumped(sys.argv[2])
    if not expected:
        sys.exit(f"{sys.argv[1]}: no expectation in it")
    total = sum(expected.values())
    rows = len(expected)
    settle_below(expected, dumped)
    differences = 0
    for entry in sorted(expected.keys() | dumped.keys()):
        if expected[entry] == dumped[entry]:
            continue
        differences += 1
        phase, path, kind, name = entry
        print(f"{phase}: {' > '.join(path)}: {kind} {name}: expected {expected[entry]}, dumped {dumped[entry]}")
    print(f"{rows} rows, {total} executions, {differences} differences")
    sys.exit(1 if differences else 0)


main()
