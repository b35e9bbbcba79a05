"""The recorder, unmodified, on the simulated device: programs that state where each kernel belongs, under every habit
and misbehaviour of CUPTI that the simulation knows (tests/sim/sim.h).
"""
import collections
import itertools
import json
import os
import signal
import stat
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import traced  # pylint: disable=wrong-import-position
from traced import check, info_number  # pylint: disable=wrong-import-position

# Ways in which records may come that must not change the result.
ORDERS = {
    "plain": {},
    "thread": {"SIM_CUPTI_THREAD": "1"},
    "early": {"SIM_EARLY": "1"},
    "late": {"SIM_LATE": "50"},
    "out_of_order": {"SIM_OUT_OF_ORDER": "1", "SIM_BUFFER_RECORDS": "7"},
    "withheld": {"SIM_WITHHOLD": "1"},
    "small_buffers": {"SIM_BUFFER_RECORDS": "1", "SIM_CUPTI_THREAD": "1"},
    "wrap": {"SIM_FIRST_CORRELATION": "0xffffff80"},
}


def sim(suite, program, *arguments):
    return [os.path.join(suite.build, "sim", program)] + list(arguments)


def record(suite, name, command, **variables):
    """Under the recorder and the simulated libraries; the exit status is not looked at."""
    libraries = os.path.join(suite.build, "sim")
    return suite.record(name, command, status=None, LD_LIBRARY_PATH=libraries, **variables)


def whole(suite, name, command, **variables):
    """Records, wants status 0, a whole profile and the layers that the program expects."""
    profile, done = record(suite, name, command, **variables)
    check(done.returncode == 0, f"{command}: status {done.returncode}: {done.stderr}")
    suite.compare(name, profile, done.stdout)
    info = suite.info(profile)
    for word in ("END MISSING", "LOST", "DAMAGED", "damaged records", "missing pieces"):
        check(word not in info, f"{name}: {info}")
    return profile, info


def in_every_order(suite, program):
    for name, variables in ORDERS.items():
        whole(suite, f"{program}-{name}", sim(suite, program), **variables)


def test_eager(suite):
    in_every_order(suite, "sim_eager")


def test_graphs(suite):
    in_every_order(suite, "sim_graphs")


def test_nvtx(suite):
    in_every_order(suite, "sim_nvtx")


def test_nvtx2(suite):
    whole(suite, "nvtx2", sim(suite, "sim_nvtx2"))


def test_old_cupti(suite):
    """CUPTI 12: shorter records, no word about updates. What can not be known is stale, never in a wrong layer."""
    whole(suite, "eager-12", sim(suite, "sim_eager"), SIM_CUPTI_VERSION="12")
    profile, done = record(suite, "graphs-12", sim(suite, "sim_graphs", "updated"), SIM_CUPTI_VERSION="12")
    check(done.returncode == 0, done.stderr)
    expected = {(row["name"], tuple(row["path"])) for row in map(json.loads, done.stdout.splitlines())}
    for entry in suite.activities(profile):
        place = (entry["name"].split("(")[0], tuple(entry["path"]))
        check(place in expected or "(stale node)" in entry["path"], f"{place} is in a wrong layer")


def test_stress(suite):
    whole(suite, "stress", sim(suite, "sim_stress", "4", "3000"), SIM_CUPTI_THREAD="1")


def test_names_of_unloaded_modules(suite):
    whole(suite, "names", sim(suite, "sim_eager"), SIM_REUSE_NAMES="1")


def test_dropped_records(suite):
    """Every 10th record dropped by CUPTI: counted, and the launches that miss theirs too."""
    profile, _ = record(suite, "dropped", sim(suite, "sim_stress", "1", "500"), SIM_DROP_EVERY="10")
    info = suite.info(profile)
    lost = info_number(info, "LOST")
    check(lost > 40 and info_number(info, "without a kernel record") == lost, info)


def test_records_without_time(suite):
    profile, _ = record(suite, "timeless", sim(suite, "sim_stress", "1", "500"), SIM_ZERO_TIMES_EVERY="10")
    check(info_number(suite.info(profile), "without time") == 50, suite.info(profile))


def test_kernels_of_the_driver(suite):
    profile, _ = record(suite, "internal", sim(suite, "sim_stress", "1", "500"), SIM_INTERNAL_EVERY="5")
    check(info_number(suite.info(profile), "launch not seen") == 100, suite.info(profile))


def test_bounded_buffers(suite):
    """Far too small buffers: records are lost and counted, and the rest is in its layers."""
    profile, done = record(suite, "bounded", sim(suite, "sim_stress", "4", "20000"), LAMINA_BUFFER_MB="0.2")
    check(done.returncode == 0, done.stderr)
    expected = {(row["phase"], tuple(row["path"])) for row in map(json.loads, done.stdout.splitlines())}
    entries = suite.activities(profile)
    check(entries, "nothing is left")
    misplaced = [e for e in entries if (e["phase"], tuple(e["path"])) not in expected and "(driver)" not in e["path"]]
    check(not misplaced, f"in a wrong layer: {misplaced[:3]}")
    check("LOST" in suite.info(profile), "the loss is not told")


# ---- doors


def test_doors(suite):
    """Each variable alone, and LD_PRELOAD, give what both together give. NVTX's alone can not see what ran before NVTX."""
    for door in ("CUDA_INJECTION64_PATH", "NVTX_INJECTION64_PATH", "LD_PRELOAD"):
        out = suite.folder("door-" + door)
        env = dict(suite.clean, LAMINA_OUT=out, LD_LIBRARY_PATH=os.path.join(suite.build, "sim"), **{door: suite.library})
        lines = suite.run(sim(suite, "sim_eager"), env).stdout.splitlines(True)
        if door == "NVTX_INJECTION64_PATH":
            lines = [line for line in lines if json.loads(line)["phase"] != "startup"]
        suite.compare("door-" + door, out, "".join(lines))


def test_profiles_are_private(suite):
    """Whoever makes the folder, and whatever the umask: nobody else can read it. Another's link is not followed."""
    env = dict(suite.clean, LD_LIBRARY_PATH=os.path.join(suite.build, "sim"))
    injected, run = suite.folder("private"), suite.folder("private-run")
    suite.run(["bash", "-c", 'umask 0; exec "$@"', "bash"] + sim(suite, "sim_exit"), dict(env, LAMINA_OUT=injected, CUDA_INJECTION64_PATH=suite.library))
    suite.run(["bash", "-c", 'umask 0; exec "$@"', "bash", suite.lamina, "run", "-o", run + "/", "--"] + sim(suite, "sim_exit"), env)
    for folder in (injected, run):
        places = [folder] + [os.path.join(folder, name) for name in os.listdir(folder)]
        modes = [stat.S_IMODE(os.stat(place).st_mode) for place in places]
        check(modes == [0o700, 0o600], f"{folder}: {[oct(mode) for mode in modes]}")
    linked, target = suite.folder("private-link"), suite.folder("private-target")
    os.makedirs(linked)
    script = 'import os, sys\nos.symlink(sys.argv[1], f"{sys.argv[2]}/{os.uname().nodename}.{os.getpid()}.lamina")\nos.execv(sys.argv[3], sys.argv[3:])'
    suite.run([sys.executable, "-c", script, target, linked] + sim(suite, "sim_exit"), dict(env, LAMINA_OUT=linked, CUDA_INJECTION64_PATH=suite.library))
    check(not os.path.exists(target) and len(os.listdir(linked)) == 2, "a link was followed")


def test_default_folder(suite):
    env = dict(suite.clean, LD_LIBRARY_PATH=os.path.join(suite.build, "sim"), CUDA_INJECTION64_PATH=suite.library)
    here = suite.folder("default-folder")
    os.makedirs(here)
    subprocess.run(sim(suite, "sim_exit"), env=env, cwd=here, check=True, capture_output=True)
    check([name for name in os.listdir(here) if name.startswith("lamina-sim_exit-")], os.listdir(here))


def test_run_and_env(suite):
    out = suite.folder("run")
    env = dict(suite.clean, LD_LIBRARY_PATH=os.path.join(suite.build, "sim"))
    done = suite.run([suite.lamina, "run", "-o", out, "--context", "model=toy", "--"] + sim(suite, "sim_eager"), env)
    suite.compare("run", out, done.stdout)
    check(f"lamina table {out}" in done.stderr, done.stderr)
    check(suite.report(out)["context"]["engine_args"]["model"] == "toy", "the context value is missing")
    other = suite.folder("env")
    script = 'eval "$("$1" env -o "$2")" && exec "$3"'
    done = suite.run(["bash", "-c", script, "bash", suite.lamina, other] + sim(suite, "sim_eager"), env)
    suite.compare("env", other, done.stdout)


def test_run_gives_the_status(suite):
    env = dict(suite.clean, LD_LIBRARY_PATH=os.path.join(suite.build, "sim"))
    for number, (mode, status) in enumerate({"return": 0, "abort": 128 + signal.SIGABRT, "kill": 128 + signal.SIGKILL}.items()):
        command = [suite.lamina, "run", "-o", suite.folder(f"status-{number}"), "--"] + sim(suite, "sim_exit", mode)
        suite.run(command, env, status)
    suite.run([suite.lamina, "run", "-o", suite.folder("status-none"), "--", "/no/such/program"], env, 127)


# ---- parts of a run


def test_every(suite):
    profile, _ = record(suite, "every", sim(suite, "sim_exit", "return", "20"), LAMINA_EVERY="7")
    steps = collections.Counter(entry.get("step") for entry in suite.activities(profile))
    check(steps == {1: 10, 8: 10, 15: 10}, f"kernels a step: {steps}")
    rows = suite.report(profile)["context"]["lamina"]["phases"]
    check(sorted(rows) == ["step_1", "step_15", "step_8"], f"steps that were not collected are shown: {sorted(rows)}")


def test_collect_phases(suite):
    profile, _ = record(suite, "collect", sim(suite, "sim_eager"), LAMINA_COLLECT="odd")
    phases = {entry["phase"] for entry in suite.activities(profile)} - {"(none)"}
    check(phases == {"odd"}, f"{phases}")


def test_collect_profiler(suite):
    profile, _ = record(suite, "profiler", sim(suite, "sim_eager"), LAMINA_COLLECT="profiler")
    phases = {entry["phase"] for entry in suite.activities(profile)}
    check("profiled" in phases and "odd" not in phases, f"{phases}")


def test_phase_pattern(suite):
    profile, _ = record(suite, "pattern", sim(suite, "sim_exit"), LAMINA_PHASE_PATTERN="whole=mod*")
    check({entry["phase"] for entry in suite.activities(profile)} == {"whole"}, "the pattern opens no phase")


# ---- ends and faults


def test_ends(suite):
    """Every orderly end writes all and a trailer; after the others what was written before is there."""
    for mode in ("return", "exit", "quick"):
        whole(suite, "end-" + mode, sim(suite, "sim_exit", mode))
    for mode in ("_exit", "abort", "kill"):
        profile, done = record(suite, "end-" + mode, sim(suite, "sim_exit", mode, "20", "100"))
        check(done.returncode == {"_exit": 0, "abort": -signal.SIGABRT, "kill": -signal.SIGKILL}[mode], f"{mode}: {done.returncode}")
        steps = collections.Counter(entry["step"] for entry in suite.activities(profile))
        check(max(steps) >= 8 and all(steps[step] == 10 for step in range(1, 8)), f"{mode}: kernels a step {steps}")
        check("END MISSING" in suite.info(profile), f"{mode}: the missing end is not told")
    for mode in ("_exit", "_Exit", "handler"):  # seen where the library comes before libc
        whole(suite, "end-preloaded-" + mode, sim(suite, "sim_exit", mode), LD_PRELOAD=suite.library)
    profile, done = record(suite, "end-busy", sim(suite, "sim_exit", "busy", "20", "20"))
    check(done.returncode == 0 and "END MISSING" not in suite.info(profile), "exit with a launching thread")


def test_threads_that_come_and_go(suite):
    """More of them, one after the other, than buffers: each gives its back, also while the symbols of a library are read."""
    whole(suite, "churn", sim(suite, "sim_stress", "4", "20", "2", "500"), LAMINA_BUFFER_MB="16")


def test_descriptors_of_the_program(suite):
    """The program closes descriptors that are not its own: its files are not written to, and one line says what ended."""
    out = suite.folder("descriptors")
    script = "import ctypes, os\ncuda = ctypes.CDLL('libcuda.so.1')\ncuda.cuInit(0)\nos.closerange(3, 4096)\n" \
             "files = [open(f'{d}/{i}', 'w') for d in [os.environ['D']] for i in range(900)]\n" \
             "import time; time.sleep(1)\n[f.write('mine') or f.close() for f in files]\n"
    files = suite.folder("descriptors-files")
    os.makedirs(files)
    env = dict(suite.clean, LAMINA_OUT=out, D=files, LD_LIBRARY_PATH=os.path.join(suite.build, "sim"), CUDA_INJECTION64_PATH=suite.library)
    done = suite.run([sys.executable, "-c", script], env)
    check(all(os.path.getsize(os.path.join(files, name)) == 4 for name in os.listdir(files)), "the program's files were written to")
    check("recording ends here" in done.stderr, done.stderr)


def test_hanging_flush(suite):
    """A GPU that hangs at exit: the program ends after the deadline, and what was there before is in the file."""
    begin = time.time()
    profile, done = record(suite, "hang", sim(suite, "sim_exit", "return", "5"), SIM_FLUSH_HANG_MS="30000", LAMINA_EXIT_DEADLINE="1")
    check(done.returncode == 0 and time.time() - begin < 15, "the exit hangs")
    check("LAMINA_EXIT_DEADLINE" in done.stderr, done.stderr)
    check(" 50 kernels" in suite.info(profile), "what the threads said is not there")
    check("END MISSING" in suite.info(profile), "the missing end is not told")


def test_slow_end_of_the_writer(suite):
    """The process ends while its thread is half gone: nothing of that is leaked, nor waited for."""
    begin = time.time()
    whole(suite, "slow-thread-end", sim(suite, "sim_exit"), SIM_SLOW_THREAD_END_MS="20000")
    check(time.time() - begin < 15, "the exit waits for the thread")


def test_forks(suite):
    # The leak check of a child waits for ever for the sanitizer's own lock, if another thread held that at the fork.
    no_leak_check = {"ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0"}
    for mode, preload in itertools.product(("before", "after", "exec", "vfork"), ({}, {"LD_PRELOAD": suite.library})):
        name = "-".join(["fork", mode, *preload])
        profile, done = record(suite, name, sim(suite, "sim_fork", mode), **no_leak_check, **preload)
        check(done.returncode == 0, f"{mode}: {done.returncode} {done.stderr}")
        suite.compare(name, profile, done.stdout)
    _, done = record(suite, "fork-threads", sim(suite, "sim_fork", "threads"), **no_leak_check)
    check(done.returncode == 0, f"forks beside threads: {done.returncode} {done.stderr}")


def test_cupti_taken(suite):
    profile, done = record(suite, "taken", sim(suite, "sim_exit"), SIM_REFUSE_SUBSCRIBE="1")
    check(done.returncode == 0 and not os.path.exists(profile), "the program or its folder suffers")
    lines = done.stderr.strip().splitlines()
    check(len(lines) == 1 and "another profiler holds CUPTI" in lines[0], done.stderr)


def test_cupti_too_old(suite):
    """The copy in the process is from before CUDA graphs."""
    old = os.path.join(suite.build, "sim", "old", "libcupti.so.13")
    env = dict(suite.clean, LD_LIBRARY_PATH=os.path.join(suite.build, "sim"), CUDA_INJECTION64_PATH=suite.library,
               LD_PRELOAD=old, LAMINA_OUT=suite.folder("old"))
    done = suite.run(sim(suite, "sim_exit"), env)
    check(done.stderr.count("\n") == 1 and "libcupti.so.13 is too old" in done.stderr, done.stderr)


def test_folders_that_can_not_be_written(suite):
    for name, out in {"file": __file__, "deep": "/proc/no/such", "device": "/dev/null/x"}.items():
        _, done = record(suite, "unwritable-" + name, sim(suite, "sim_exit"))
        env = dict(suite.clean, LAMINA_OUT=out, LD_LIBRARY_PATH=os.path.join(suite.build, "sim"), CUDA_INJECTION64_PATH=suite.library)
        done = suite.run(sim(suite, "sim_exit"), env)
        lines = done.stderr.strip().splitlines()
        check(len(lines) == 1 and "nothing is recorded" in lines[0] and out in lines[0], f"{name}: {done.stderr}")


def test_full_disk(suite):
    """The file system refuses more: the program goes on, one line says so, and what was written reads."""
    out = suite.folder("full")
    env = dict(suite.clean, LAMINA_OUT=out, LD_LIBRARY_PATH=os.path.join(suite.build, "sim"), CUDA_INJECTION64_PATH=suite.library)
    command = ["bash", "-c", 'trap "" XFSZ; ulimit -f 24; exec "$@"', "bash"] + sim(suite, "sim_stress", "2", "30000")
    done = suite.run(command, env)
    lines = done.stderr.strip().splitlines()
    check(len(lines) == 1 and "recording ends here" in lines[0], done.stderr)
    info = suite.info(out)
    check("END MISSING" in info or "DAMAGED" in info, info)


def test_program_is_not_changed(suite):
    """Output and status are those of a run without the recorder."""
    env = dict(suite.clean, LD_LIBRARY_PATH=os.path.join(suite.build, "sim"))
    for program in ("sim_eager", "sim_graphs", "sim_nvtx"):
        bare = suite.run(sim(suite, program), env)
        _, done = record(suite, "same-" + program, sim(suite, program))
        check((bare.returncode, bare.stdout, bare.stderr) == (done.returncode, done.stdout, done.stderr), f"{program}: {done.stderr}")


def test_signal_handlers(suite):
    """NVTX calls at any time, with new texts: the program ends, and no kernel is in another layer."""
    profile, done = record(suite, "signal", sim(suite, "sim_signal"))
    check(done.returncode == 0 and done.stderr == "", f"status {done.returncode}: {done.stderr}")
    suite.compare("signal", profile, done.stdout)
    info = suite.info(profile)
    losses = [line for line in info.splitlines() if "LOST" in line and "signal handlers" not in line]
    check(not losses and "END MISSING" not in info, info)


# ---- reports on what was recorded


# ---- call stacks


def call_tree(suite, mode, *table, **variables):
    """({path of the summary: invocations}, finished process) of sim_stacks."""
    name = "-".join(["stacks", mode, *table, *variables])
    profile, done = record(suite, name, sim(suite, "sim_stacks", mode), **variables)
    check(done.returncode == 0, done.stderr)
    text = suite.run([suite.lamina, "table", profile, *table]).stdout
    rows, path = {}, []
    for line in text.splitlines()[2:]:
        name, invocations = line.split(" | ")[0].rstrip(), float(line.split(" | ")[3])
        depth = len(name) - len(name.lstrip("|-")) - 1 if name.startswith("|") else 0
        path[depth:] = [name.lstrip("|- ").replace("program::", "").split("(float")[0]]
        rows[" ".join(path)] = invocations
    return rows, done


def kernels_of(rows):
    return {path: count for path, count in rows.items() if not any(other.startswith(path + " ") for other in rows)}


def test_stacks_are_the_call_tree(suite):
    """A program without any range; two callers of one launcher have equal frames."""
    rows, _ = call_tree(suite, "calls")
    check(kernels_of(rows) == {f"main run_step forward {caller} launch_gemm gemm": 12 for caller in ("attention", "mlp")}, rows)
    rows, _ = call_tree(suite, "threads")
    # The threads' lambda is a frame only where it is not inlined.
    kernels = {path[path.find("run_step"):]: count for path, count in kernels_of(rows).items()}
    check(kernels == {f"run_step forward {caller} launch_gemm gemm": 6400 for caller in ("attention", "mlp")}, rows)


def test_stacks_in_ranges(suite):
    """The trace; with --stacks rows between layer and kernel."""
    rows, _ = call_tree(suite, "ranges")
    check(kernels_of(rows) == {"layer gemm": 24}, rows)
    profile = suite.folder("stacks-ranges")
    traces = {row.split(" | ")[4].rstrip() for row in
              suite.run([suite.lamina, "table", profile, "--table", "model", "--names", "full"]).stdout.splitlines()[2:]}
    ends = "program::forward <- program::run_step <- main <- sim_stacks"
    check(traces == {"", f"program::launch_gemm <- program::attention <- {ends}", f"program::launch_gemm <- program::mlp <- {ends}"}, traces)
    rows, _ = call_tree(suite, "ranges", "--stacks")
    check(kernels_of(rows) == {f"layer main run_step forward {caller} launch_gemm gemm": 12 for caller in ("attention", "mlp")}, rows)
    rows, _ = call_tree(suite, "ranges", "--stacks", "full")
    check(any("cuLaunchKernel" in path for path in rows), rows)


def test_stacks_of_graph_nodes(suite):
    rows, _ = call_tree(suite, "graph")
    check(kernels_of(rows) == {"main replay_graph captured": 6}, rows)


def test_stacks_do_no_harm(suite):
    """Deep recursion, little stack, exceptions, code without unwind tables, libraries that come and go."""
    for mode, expected in (("recursion", {"recurse launch_gemm deep": 1}), ("small", {"on_small_stack launch_gemm small": 1}),
                           ("throw", {"main catches throws launch_gemm before_throw": 10}),
                           ("plugins", {f"main plugin plugin_run in_plugin_{name} launch_gemm plugged": 3 for name in "ab"})):
        rows, done = call_tree(suite, mode)
        found = {path.replace("on_small_stack()::{lambda", "on_small_stack"): count for path, count in kernels_of(rows).items()}
        check(found == expected, f"{mode}: {rows}")
        check(not done.stderr, done.stderr)
        bare = suite.run(sim(suite, "sim_stacks", mode), dict(suite.clean, LD_LIBRARY_PATH=os.path.join(suite.build, "sim")))
        check(bare.stdout.split(" at ")[0] == done.stdout.split(" at ")[0], f"{bare.stdout} {done.stdout}")
    rows, done = call_tree(suite, "loading")
    check(kernels_of(rows) == {"(anonymous namespace)::in_constructor loading": 1, "main load_launching_library loaded": 1}, rows)
    check(done.stdout == "no error\n", done.stdout)
    rows, _ = call_tree(suite, "jit")
    check(list(kernels_of(rows).values()) == [3] and "jitted launch_gemm jitted" in list(kernels_of(rows))[0], rows)


def test_stacks_off_or_not_there(suite):
    rows, done = call_tree(suite, "calls", LAMINA_STACKS="off")
    check(kernels_of(rows) == {"(no module) gemm": 24} and not done.stderr, f"{rows} {done.stderr}")
    rows, _ = call_tree(suite, "calls", LAMINA_TORCH="modules")
    check(kernels_of(rows) == {"(no module) gemm": 24}, rows)
    rows, _ = call_tree(suite, "calls", LAMINA_TORCH="modules", LAMINA_STACKS="on")
    check("main run_step forward mlp launch_gemm gemm" in rows, rows)
    empty = suite.folder("no-libunwind")
    os.makedirs(empty)
    with open(os.path.join(empty, "libunwind.so.8"), "w", encoding="utf-8"):
        pass  # no library
    libraries = f"{empty}:{os.path.join(suite.build, 'sim')}"
    profile, done = suite.record("stacks-none", sim(suite, "sim_stacks"), status=None, LD_LIBRARY_PATH=libraries)
    check(done.returncode == 0 and done.stderr.count("\n") == 1 and "libunwind.so.8" in done.stderr, done.stderr)
    check(len(suite.activities(profile)) == 24, "kernels are missing")


def test_library_table(suite):
    if not os.path.exists(suite.folder("stacks-calls")):
        call_tree(suite, "calls")
    rows = suite.run([suite.lamina, "table", suite.folder("stacks-calls"), "--table", "library"]).stdout.splitlines()[2:]
    check([row.split()[0] for row in rows] == ["sim_stacks"], rows)


def test_bad_profiles(suite):
    """One clear line and status 1 for each kind of bad input."""
    profile, _ = record(suite, "good", sim(suite, "sim_exit", "return", "30", "50"))
    name = os.listdir(profile)[0]
    with open(os.path.join(profile, name), "rb") as file:
        good = file.read()
    cases = {"empty": b"", "cut-header": good[:20], "foreign": b"\x7fELF" * 100, "newer": good[:8] + b"\x63" + good[9:]}
    for case, content in cases.items():
        path = suite.folder(case + ".lamina")
        with open(path, "wb") as file:
            file.write(content)
        done = suite.run([suite.lamina, "table", path], status=1)
        check(done.stderr.count("\n") == 1 and path in done.stderr, f"{case}: {done.stderr}")
    suite.run([suite.lamina, "table", suite.folder("nothing-here")], status=1)
    suite.run([suite.lamina, "table"], status=2)
    suite.run([suite.lamina, "table", profile, "--phase", "no-such"], status=1)
    cut = suite.folder("cut.lamina")
    with open(cut, "wb") as file:
        file.write(good[: len(good) * 3 // 4])
    check("missing" in suite.run([suite.lamina, "table", cut]).stderr, "a cut profile is not told")
    with open(cut, "wb") as file:
        file.write(good[:200])
    check("no kernel is left" in suite.run([suite.lamina, "table", cut], status=1).stderr, "a useless profile is not told")


sys.exit(traced.main(globals()))
