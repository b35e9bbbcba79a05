"""What the tests of traced programs share: the ways to run a program under the recorder, and to look at its profile.

A test file has functions test_*(suite) and ends with `sys.exit(traced.main(globals()))`.
"""
import argparse
import collections
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import traceback

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
DOORS = ("CUDA_INJECTION64_PATH", "NVTX_INJECTION64_PATH", "LD_PRELOAD", "LAMINA_OUT")


class Skip(Exception):
    """The machine lacks what the test needs."""


class Suite:
    """Paths of the build and a scratch folder, and the ways to run programs."""

    def __init__(self, build, scratch):
        self.build, self.scratch = os.path.abspath(build), scratch
        self.lamina = os.environ.get("LAMINA_TEST_COMMAND") or os.path.join(self.build, "bin", "lamina")
        self.library = os.path.join(self.build, "lib", "liblamina_inject.so")
        self.clean = {k: v for k, v in os.environ.items() if k not in DOORS and not k.startswith("LAMINA_")}

    def program(self, name):
        return os.path.join(self.build, "bin", name)

    def folder(self, name):
        return os.path.join(self.scratch, name)

    def run(self, command, env=None, status=0, timeout=240):
        done = subprocess.run(command, env=env or self.clean, capture_output=True, text=True, timeout=timeout, check=False)
        if status is not None and done.returncode != status:
            raise AssertionError(f"{command}: exit status {done.returncode}, not {status}\n{done.stdout}\n{done.stderr}")
        return done

    def record(self, name, command, doors=("CUDA_INJECTION64_PATH", "NVTX_INJECTION64_PATH"), status=0, **variables):
        """Runs the command under the recorder and returns (profile folder, finished process)."""
        out = self.folder(name)
        env = dict(self.clean, LAMINA_OUT=out, **{door: self.library for door in doors}, **variables)
        return out, self.run(command, env, status)

    def compare(self, name, profile, expectation):
        """Compares the dump of the profile with the expectation that a program printed. Returns the last line."""
        paths = [self.folder(f"{name}.{kind}") for kind in ("expect", "dump")]
        for path, text in zip(paths, (expectation, self.run([self.lamina, "dump", profile]).stdout)):
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
        done = self.run([sys.executable, os.path.join(ROOT, "tests", "compare_dump.py")] + paths, status=None)
        check(done.returncode == 0, done.stdout + done.stderr)
        return done.stdout.splitlines()[-1]

    def needs_simulated_cupti(self, python):
        """Skips where this Python's PyTorch maps a CUPTI that it brings: that one knows no simulated device."""
        code = "import os, torch; print(os.path.exists(os.path.join(torch.__path__[0], '..', 'nvidia', 'cuda_cupti')))"
        if self.run([python, "-c", code]).stdout == "True\n":
            raise Skip("this PyTorch brings a CUPTI, which knows no simulated device")

    def dump(self, profile):
        return [json.loads(line) for line in self.run([self.lamina, "dump", profile]).stdout.splitlines()]

    def activities(self, profile):
        return [entry for entry in self.dump(profile) if entry["record"] in ("kernel", "memcpy", "memset")]

    def report(self, profile):
        return json.loads(self.run([self.lamina, "json", profile, "-o", "-"]).stdout)

    def info(self, profile):
        return self.run([self.lamina, "info", profile]).stdout


def check(condition, message):
    if not condition:
        raise AssertionError(message)


def info_number(info, label):
    """The number in the line of `lamina info` with this label; 0 when there is none."""
    found = re.search(rf"^ +{re.escape(label)} +(\d+)", info, re.M)
    return int(found.group(1)) if found else 0


def run_tests(suite, functions, chosen):
    tests = {name[5:]: function for name, function in functions.items() if name.startswith("test_")}
    unknown = set(chosen) - set(tests)
    if unknown:
        sys.exit(f"no such test: {', '.join(sorted(unknown))}; there are {', '.join(tests)}")
    counts = collections.Counter()
    for name in chosen or tests:
        begin = time.time()
        try:
            print(f"{name}")
            tests[name](suite)
            result = "passed"
        except Skip as reason:
            result = "skipped"
            print(f"    {reason}")
        except Exception:  # pylint: disable=broad-except
            result = "failed"
            print(traceback.format_exc())
        counts[result] += 1
        print(f"  {result} in {time.time() - begin:.1f} s")
    print(f"{counts['passed']} passed, {counts['failed']} failed, {counts['skipped']} skipped")
    return 1 if counts["failed"] else 0


def main(functions):
    parser = argparse.ArgumentParser(description=functions["__doc__"], formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default=os.path.join(ROOT, "build"), help="folder of the build")
    parser.add_argument("--keep", help="keep the profiles in this folder")
    parser.add_argument("tests", nargs="*")
    arguments = parser.parse_args()
    scratch = os.path.abspath(arguments.keep) if arguments.keep else tempfile.mkdtemp(prefix="lamina-test-")
    os.makedirs(scratch, exist_ok=True)
    try:
        return run_tests(Suite(arguments.build, scratch), functions, arguments.tests)
    finally:
        if not arguments.keep:
            shutil.rmtree(scratch, ignore_errors=True)
