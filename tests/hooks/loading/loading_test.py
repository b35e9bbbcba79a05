#!/usr/bin/env python3
"""How the hook gets into a process, and that it hides nothing: loading_test.py --build BUILD [TEST...]

The interpreter is LAMINA_TEST_PYTHON's.
"""
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", ".."), os.path.join(HERE, "..")]
import hooked  # noqa: E402
import traced  # noqa: E402
from traced import check  # noqa: E402

LINEAR = "Linear(weight=float32[4, 4], bias=float32[4]) @ Linear"
CALL = "import torch; torch.nn.Linear(4, 4)(torch.ones(1, 4))"
# Starts CUDA on the simulated device, as a program of its own would.
START_CUDA = "import ctypes; ctypes.CDLL('libcuda.so.1').cuInit(0)"
# Until the injection library has had its chance: a pending call of the main thread, or of a thread of its own.
WAIT = "import sys, time\nfor _ in range(100):\n    if 'lamina_torch' in sys.modules: break\n    time.sleep(0.05)"


def ranges(suite, name, code, **variables):
    done, events = hooked.run(suite, name, ["-c", code], **variables)
    return done, [line for thread in hooked.trees(events, "lamina") for line in thread]


def write(folder, name, text):
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
        file.write(text)
    return folder


def test_before_torch(suite):
    done, found = ranges(suite, "before", CALL, LAMINA_TORCH="modules", LAMINA_LOG="debug")
    check(found == [LINEAR], str(found))
    check("nn.Module calls are ranges" in done.stderr, done.stderr)


def test_off(suite):
    done, found = ranges(suite, "off", CALL + "; import sys; print('lamina_hook' in sys.modules)", LAMINA_TORCH="off")
    check(found == [] and done.stderr == "", f"{found} {done.stderr}")


def test_no_tool_listens(suite):
    """Without an NVTX tool nothing is hooked."""
    env = hooked.environment(suite, suite.folder("no-tool.nvtx"), LAMINA_LOG="debug", LAMINA_TORCH="modules")
    del env["NVTX_INJECTION64_PATH"]
    done = suite.run([hooked.PYTHON, "-c", CALL], env)
    check("no NVTX tool listens" in done.stderr, done.stderr)


def test_finders_of_the_program(suite):
    """Import works, and is seen, whatever a program does to the finders."""
    for number, finders in enumerate(("sys.meta_path[:] = [Wrapper(f) for f in sys.meta_path]", "sys.meta_path.insert(0, Wrapper(PathFinder))")):
        code = f"""
import sys
from importlib.machinery import PathFinder
class Wrapper:
    def __init__(self, finder): self.finder = finder
    def find_spec(self, name, path=None, target=None): return self.finder.find_spec(name, path, target)
    def __getattr__(self, name): return getattr(self.finder, name)
{finders}
{CALL}"""
        done, found = ranges(suite, f"finders-{number}", code, LAMINA_TORCH="modules")
        check(found == [LINEAR] and not done.stderr, f"{finders}: {found} {done.stderr}")


def test_daemon_threads_at_exit(suite):
    """They are ended wherever they are."""
    code = """
import threading, time, torch
def work():
    while True: torch.nn.Sequential(torch.nn.Identity())(None)
for _ in range(3): threading.Thread(target=work, daemon=True).start()
time.sleep(0.2)
print("end")
"""
    env = hooked.environment(suite, suite.folder("daemon"), LAMINA_TORCH="modules", NVTX_LOG_QUIET="1")
    done = suite.run([hooked.PYTHON, "-c", code], env)
    check(done.stdout == "end\n" and not done.stderr, done.stderr)


def test_other_sitecustomize(suite):
    """The one that Python would have imported without us is imported, and nothing of ours is left in sys.path."""
    other = write(suite.folder("other"), "sitecustomize.py", "import sys; sys.other_ran = __name__, __file__\n")
    env = hooked.environment(suite, suite.folder("other.nvtx"), LAMINA_TORCH="modules")
    startup = env["PYTHONPATH"]
    env["PYTHONPATH"] += ":" + other
    code = f"import sys, sitecustomize; {CALL}; print(sys.other_ran, sitecustomize.__file__, {startup!r} in sys.path)"
    done = suite.run([hooked.PYTHON, "-c", code], env)
    file = os.path.join(other, "sitecustomize.py")
    check(done.stdout.strip() == f"('sitecustomize', '{file}') {file} False", done.stdout + done.stderr)
    with open(suite.folder("other.nvtx"), encoding="utf-8") as log:
        check(LINEAR in log.read(), "the hook was not there")


def test_failing_sitecustomize(suite):
    """An error in the other one is reported as Python does it."""
    other = write(suite.folder("failing"), "sitecustomize.py", "raise ValueError('of the user')\n")
    env = hooked.environment(suite, suite.folder("failing.nvtx"), LAMINA_TORCH="modules")
    env["PYTHONPATH"] += ":" + other
    done = suite.run([hooked.PYTHON, "-c", "print('goes on')"], env)
    check(done.stdout == "goes on\n" and "of the user" in done.stderr, done.stdout + done.stderr)


def test_same_path_as_without(suite):
    """sys.path, sys.meta_path and what is imported are as without us, once PyTorch is there."""
    code = ("import torch, sys; print([p for p in sys.path], [type(f).__name__ if not isinstance(f, type) else f.__name__ "
            "for f in sys.meta_path], sorted(m for m in sys.modules if 'lamina' not in m and m not in ('ctypes', '_ctypes', "
            "'ctypes._endian')))")
    env = hooked.environment(suite, suite.folder("path.nvtx"), LAMINA_TORCH="modules")
    bare = suite.run([hooked.PYTHON, "-c", code]).stdout
    found = suite.run([hooked.PYTHON, "-c", code], env).stdout
    more = set(found.split()) - set(bare.split())
    check(found.split("] [")[0] == bare.split("] [")[0] and not more - {"'sitecustomize',"}, f"{more}\n{found[:500]}\n{bare[:500]}")


def at_cuda_start(suite, name, code, **variables):
    """(process, profile) with the injection library alone, the simulated device, and no PYTHONPATH."""
    libraries = os.path.join(suite.build, "sim")
    return suite.record(name, [hooked.PYTHON, "-c", code], doors=("CUDA_INJECTION64_PATH",), LD_LIBRARY_PATH=libraries, **variables)


def layers(suite, profile):
    return suite.run([suite.lamina, "table", "--table", "model", profile], status=None).stdout


def test_at_cuda_start(suite):
    """CUDA_INJECTION64_PATH alone: before or after the import of PyTorch, from a worker thread while the main one waits."""
    suite.needs_simulated_cupti(hooked.PYTHON)
    call = CALL.replace("import torch; ", "")
    thread = f"import threading\nt = threading.Thread(target=lambda: (exec({WAIT!r}), exec({CALL!r})))\nt.start(); t.join()"
    for name, code in {"first": f"{START_CUDA}\n{WAIT}\n{CALL}", "last": f"import torch\n{START_CUDA}\n{WAIT}\n{call}",
                       "thread": f"{START_CUDA}\n{thread}"}.items():
        profile, done = at_cuda_start(suite, "cuda-" + name, code, LAMINA_TORCH="modules")
        check("lamina" not in done.stderr, done.stderr)
        found = suite.run([suite.lamina, "dump", profile]).stdout
        check("Linear(weight=float32[4, 4]" in found, f"{name}: {found[-2000:]}")


def test_launch_in_a_module(suite):
    """Functions stand between a module and what they launch; those that called the module do not."""
    suite.needs_simulated_cupti(hooked.PYTHON)
    out = suite.folder("launch-in-module")
    env = dict(suite.clean, LD_LIBRARY_PATH=os.path.join(suite.build, "sim"))
    suite.run([suite.lamina, "run", "-q", "-o", out, "--", hooked.PYTHON, os.path.join(HERE, "launching_modules.py")], env)
    rows = suite.run([suite.lamina, "table", out, "--stacks", "--names", "full"]).stdout.splitlines()[2:]
    names = [row.split(" | ")[0].rstrip().replace(" (launching_modules.py)", "") for row in rows]
    qualified = python_version(suite) >= (3, 11)
    forward, helper = ("Attention.forward", "Attention.helper") if qualified else ("forward", "helper")
    expected = ["Model", "|- Attention", f"|-- {forward}", f"|--- {helper}", "|---- launch", "|----- gemm(float*)",
                f"|- {'Model.forward' if qualified else 'forward'}", "|-- launch", "|--- gemm(float*)"]
    check(names == expected, "\n".join(names))
    rows = suite.run([suite.lamina, "table", out, "--table", "model", "--names", "full"]).stdout.splitlines()
    traces = {row.split(" | ")[4].rstrip() for row in rows if "gemm" in row}
    check(len(traces) == 2 and all("Model.forward" in trace or f"{helper} (launching_modules.py:" in trace for trace in traces), traces)


def python_version(suite):
    text = suite.run([hooked.PYTHON, "-c", "import sys; print(sys.version_info[1])"]).stdout
    return 3, int(text)


def test_twice(suite):
    """At start-up and at CUDA's start: one range a call."""
    libraries = os.path.join(suite.build, "sim")
    env = hooked.environment(suite, suite.folder("twice.nvtx"), LAMINA_TORCH="modules", LD_LIBRARY_PATH=libraries,
                             CUDA_INJECTION64_PATH=suite.library, LAMINA_OUT=suite.folder("twice"))
    suite.run([hooked.PYTHON, "-c", f"{START_CUDA}\n{WAIT}\nimport time; time.sleep(0.5)\n{CALL}"], env)
    with open(suite.folder("twice.nvtx"), encoding="utf-8") as log:
        check(sum(line.startswith("push") and LINEAR in line for line in log) == 1, "not one range")


def test_wrong_wish(suite):
    done, found = ranges(suite, "wish", CALL, LAMINA_TORCH="everything")
    check("LAMINA_TORCH=everything" in done.stderr and found, done.stderr)


def test_children(suite):
    """Spawned and executed children have the hook too."""
    code = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {CALL!r}], check=True)"
    _, found = ranges(suite, "child", code, LAMINA_TORCH="modules")
    check(found == [LINEAR], str(found))


def test_lamina_run(suite):
    """The command sets all of it, keeps the user's PYTHONPATH, and leaves it alone with --torch off."""
    code = "import os; print(os.environ['PYTHONPATH'])"
    mine = dict(suite.clean, PYTHONPATH="/mine")
    command = [suite.lamina, "run", "-q", "-o"]
    done = suite.run(command + [suite.folder("run1"), "--", hooked.PYTHON, "-c", code], mine)
    check(done.stdout.strip() == os.path.join(suite.build, "lib/lamina/python/startup") + ":/mine", done.stdout)
    done = suite.run(command + [suite.folder("run2"), "--torch", "off", "--", hooked.PYTHON, "-c", code], mine)
    check(done.stdout.strip() == "/mine", done.stdout)
    printed = suite.run([suite.lamina, "env", "--torch", "modules"]).stdout
    check("PYTHONPATH" in printed and "LAMINA_TORCH" in printed, printed)


def test_missing_parts(suite):
    """Without its extension the hook says so in one line, and the program goes on."""
    import shutil  # pylint: disable=import-outside-toplevel

    broken = suite.folder("broken")
    shutil.copytree(os.path.join(suite.build, "lib", "lamina", "python"), os.path.join(broken, "python"))
    env = hooked.environment(suite, suite.folder("broken.nvtx"))
    env["PYTHONPATH"] = os.path.join(broken, "python", "startup")
    done = suite.run([hooked.PYTHON, "-c", CALL + "; print('goes on')"], env)
    check(done.stdout == "goes on\n" and done.stderr.count("\n") == 1 and "not hooked" in done.stderr, done.stderr)


def test_isolated_interpreter(suite):
    """python -I takes no PYTHONPATH: nothing happens, and nothing breaks."""
    env = hooked.environment(suite, suite.folder("isolated.nvtx"))
    done = subprocess.run([hooked.PYTHON, "-I", "-c", "print('goes on')"], env=env, capture_output=True, text=True, check=True)
    check(done.stdout == "goes on\n" and not done.stderr, done.stderr)


if __name__ == "__main__":
    sys.exit(traced.main(globals()))
