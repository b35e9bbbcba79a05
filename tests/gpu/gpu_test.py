"""The GPU suite: real programs on a real GPU, recorded by the library as built, compared with what must come out.

Each test is a function below named test_*. Ends with `N passed, N failed, N skipped`.
"""
import collections
import json
import os
import re
import signal
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))
import traced  # pylint: disable=wrong-import-position
from traced import Skip, check  # pylint: disable=wrong-import-position


def tokens(text):
    return [line for line in text.splitlines() if line.startswith("tokens[")]


def phase_rows(report, phase):
    """{path of names: (time, invocations)} of the summary of all steps of a phase."""
    rows = collections.defaultdict(lambda: [0.0, 0])

    def visit(nodes, path):
        for node in nodes:
            entry = node["entry"]
            row = rows[path + (entry["name"],)]
            row[0] += entry["cuda_time_us"]
            row[1] += entry["invocations"]
            visit(node["children"], path + (entry["name"],))

    for key, value in report.items():
        if re.fullmatch(phase + r"(_\d+)?", key):
            visit(value["summary_stats"], ())
    return rows


def roots_time(report):
    """Sum of the roots over every phase, in us."""
    phases = [value for key, value in report.items() if key != "context"]
    phases += report["context"].get("lamina", {}).get("phases", {}).values()
    return sum(root["entry"]["cuda_time_us"] for phase in phases for root in phase["model_stats"])


# ---- graphs


def zoo(suite, name, arguments):
    profile, done = suite.record(name, [suite.program("graph_zoo")] + arguments)
    print("    " + suite.compare(name, profile, done.stdout))


def test_graph_zoo(suite):
    zoo(suite, "zoo", [])


def test_graphs_recreated(suite):
    zoo(suite, "recreated", ["--loops", "5000", "recreated"])


# ---- a model in both modes


def test_modes_agree(suite):
    """Eager and graph: the program's own result unchanged, the same kernels as often in each layer, all in a layer."""
    rows = {}
    for mode in ("eager", "graph"):
        command = [suite.program("mini_llm"), "--small"] + (["--graph"] if mode == "graph" else [])
        bare = suite.run(command)
        profile, done = suite.record("small-" + mode, command)
        check(tokens(bare.stdout) == tokens(done.stdout) != [], "the tokens differ under the recorder")
        report = suite.report(profile)
        rows[mode] = {path: row[1] for path, row in phase_rows(report, "decode").items()}
        for phase in ("prefill", "decode"):
            check(not any(path[0].startswith("(") for path in phase_rows(report, phase)), f"{mode}: {phase} has kernels in no layer")
        activities = suite.activities(profile)
        total = sum(entry["duration_ns"] for entry in activities) / 1000
        check(abs(roots_time(report) - total) < 1e-6 * max(total, 1), f"{mode}: rows {roots_time(report)} us, dump {total} us")
        print(f"    {mode}: {len(activities)} activities, {total:.1f} us in rows and in the dump")
    check(rows["eager"] == rows["graph"], f"eager and graph differ: {set(rows['eager'].items()) ^ set(rows['graph'].items())}")


def test_bytes_per_kernel(suite):
    """A long run of replays, for the size on disk."""
    profile, _ = suite.record("replays", [suite.program("mini_llm"), "--small", "--graph", "--steps", "2000", "--no-print-tokens"])
    kernels = sum(1 for entry in suite.activities(profile) if entry["record"] == "kernel" and entry["phase"] == "decode")
    size = sum(os.path.getsize(os.path.join(profile, name)) for name in os.listdir(profile))
    print(f"    {kernels} kernels of replays, {size / kernels:.2f} bytes on disk each")
    check(kernels == 2000 * 45, "not every kernel of every replay is there")
    check(size / kernels <= 24, f"{size / kernels:.1f} bytes a kernel")


# ---- doors


def test_doors(suite):
    """Every way in gives the same layers."""
    names = {}
    doors = {
        "both": ("CUDA_INJECTION64_PATH", "NVTX_INJECTION64_PATH"),
        "cuda": ("CUDA_INJECTION64_PATH",),
        "nvtx": ("NVTX_INJECTION64_PATH",),
        "preload": ("LD_PRELOAD",),
    }
    for name, variables in doors.items():
        profile, _ = suite.record("door-" + name, [suite.program("mini_llm"), "--small"], doors=variables)
        names[name] = {path: row[1] for path, row in phase_rows(suite.report(profile), "decode").items()}
    profile = suite.folder("door-run")
    suite.run([suite.lamina, "run", "-o", profile, "--", suite.program("mini_llm"), "--small"])
    names["run"] = {path: row[1] for path, row in phase_rows(suite.report(profile), "decode").items()}
    for name, rows in names.items():
        check(rows and rows == names["both"], f"door {name} gives other layers")


# ---- parts of a run


def test_every(suite):
    """--every 4 on a GPU that lags behind the host: what of the chosen steps is there."""
    command = [suite.program("mini_llm"), "--layers", "8", "--graph", "--steps", "32", "--no-print-tokens"]
    profile, _ = suite.record("every", command, LAMINA_EVERY="4")
    whole, _ = suite.record("every-whole", command)
    per_step = collections.Counter(entry["step"] for entry in suite.activities(profile) if entry["phase"] == "decode")
    expected = collections.Counter(entry["step"] for entry in suite.activities(whole) if entry["phase"] == "decode")
    check(sorted(per_step) == list(range(1, 33, 4)), f"steps {sorted(per_step)}")
    check(all(per_step[step] == expected[step] for step in per_step), "a step misses kernels that were in flight")
    print(f"    {len(per_step)} of 32 steps, each with all {expected[1]} kernels, though activity went off while they ran")


def test_collect(suite):
    profile, _ = suite.record("collect", [suite.program("mini_llm"), "--small"], LAMINA_COLLECT="decode")
    phases = {entry["phase"] for entry in suite.activities(profile)}
    check(phases == {"decode"}, f"--collect decode gives {phases}")


# ---- ends


def test_kill(suite):
    """kill -9 in mid-run: everything but the last second is there."""
    out = suite.folder("killed")
    env = dict(suite.clean, LAMINA_OUT=out, CUDA_INJECTION64_PATH=suite.library, NVTX_INJECTION64_PATH=suite.library)
    command = [suite.program("mini_llm"), "--small", "--graph", "--steps", "1000000", "--sleep-ms", "5", "--no-print-tokens"]
    with subprocess.Popen(command, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        time.sleep(6)
        killed_at = time.time()
        process.send_signal(signal.SIGKILL)
    activities = [entry for entry in suite.activities(out) if entry["phase"] == "decode"]
    last = max(entry["start"] + entry["duration_ns"] for entry in activities) / 1e9
    print(f"    {len(activities)} activities, the last {killed_at - last:.2f} s before the kill")
    check(killed_at - last < 1.2, "more than the last second is missing")
    check("END MISSING" in suite.info(out), "info does not tell that the end is missing")
    per_step = collections.Counter(entry["step"] for entry in activities)
    check(len(set(list(per_step.values())[:-1])) == 1, "steps before the end have holes")


def test_no_gpu(suite):
    """Without a device the program ends as it would."""
    command = [suite.program("mini_llm"), "--small"]
    bare = suite.run(command, dict(suite.clean, CUDA_VISIBLE_DEVICES=""), status=None)
    _, done = suite.record("no-gpu", command, status=None, CUDA_VISIBLE_DEVICES="")
    check((bare.returncode, bare.stdout) == (done.returncode, done.stdout), "the program ended otherwise")
    print("    " + done.stderr.strip().replace("\n", "\n    "))


# ---- a second profiler


def torch_program(suite, name, *arguments):
    try:
        import torch  # pylint: disable=unused-import,import-outside-toplevel
    except ImportError as error:
        raise Skip("no PyTorch") from error
    return [sys.executable, os.path.join(HERE, name)] + list(arguments)


def test_same_kernels_as_torch_profiler(suite):
    """One deterministic program, each profiler in a run of its own: the same names as often."""
    peer = json.loads(suite.run(torch_program(suite, "torch_program.py", "--profiler")).stdout.splitlines()[-1])
    profile, _ = suite.record("torch", torch_program(suite, "torch_program.py"))
    ours = collections.Counter(entry["name"] for entry in suite.activities(profile) if entry["phase"] == "work")
    check(ours == collections.Counter(peer), f"ours {ours - collections.Counter(peer)}, theirs {collections.Counter(peer) - ours}")
    print(f"    {len(ours)} names, {sum(ours.values())} executions")


# ---- the PyTorch hook


def hooked_program(suite, name, program, *arguments, **variables):
    """(profile of a program with PyTorch, hooked as `lamina run` does it, finished process)"""
    out = suite.folder(name)
    command = torch_program(suite, program, *arguments)
    done = suite.run([suite.lamina, "run", "-q", "-o", out, "--", *command], dict(suite.clean, **variables))
    check("hooked" not in done.stderr and "ops are not seen" not in done.stderr, done.stderr)
    return out, done


def layers_program(suite, name, *arguments, **variables):
    """A profile of the Mistral-shaped model."""
    return hooked_program(suite, name, "torch_layers.py", *arguments, **variables)[0]


def kernels_by_class(suite, profile):
    """{phase: {path of module classes: {kernel: count}}} of the dump, as torch_layers.py --profiler prints it."""
    found = collections.defaultdict(lambda: collections.defaultdict(collections.Counter))
    for entry in suite.activities(profile):
        path = [layer.split("(")[0] for layer in entry["path"] if not layer.startswith("(")]
        found[entry["phase"]]["/".join(path)][entry["name"]] += 1
    return found


def kernel_rows(report):
    """The entries of all kernels in the model rows of all steps."""
    def leaves(nodes):
        for node in nodes:
            yield from leaves(node["children"]) if node["children"] else [node["entry"]]

    return [entry for key in report if key != "context" for entry in leaves(report[key]["model_stats"])]


def differences(ours, theirs):
    """Lines for what one of two {path: {kernel: count}} has more of."""
    return [f"{path}: ours {dict(ours[path] - theirs[path])}, theirs {dict(theirs[path] - ours[path])}"
            for path in sorted(set(ours) | set(theirs)) if ours[path] != theirs[path]]


def test_layers_as_torch_profiler(suite):
    """Per module the same kernels as often as in the module tree of torch.profiler, which runs in a process of its own."""
    program = torch_program(suite, "torch_layers.py", "--profiler", "--steps", "2")
    peer = json.loads(suite.run(program).stdout.splitlines()[-1])
    ours = kernels_by_class(suite, layers_program(suite, "layers-eager", "--steps", "2"))
    for phase in ("prefill", "decode"):
        theirs = collections.defaultdict(collections.Counter, {path: collections.Counter(k) for path, k in peer[phase].items()})
        wrong = differences(ours[phase], theirs)
        check(not wrong, f"{phase}:\n" + "\n".join(wrong[:20]))
        print(f"    {phase}: {len(theirs)} module paths, {sum(map(sum, (k.values() for k in theirs.values())))} kernels")


def test_layers_in_graph(suite):
    """Replayed from a CUDA graph each layer has the kernels that it has eagerly."""
    eager = kernels_by_class(suite, layers_program(suite, "layers-eager-2"))
    graph = kernels_by_class(suite, layers_program(suite, "layers-graph", "--graph"))
    for phase in ("prefill", "decode"):
        wrong = differences(eager[phase], graph[phase])
        check(not wrong, f"{phase} (ours: eager, theirs: graph):\n" + "\n".join(wrong[:20]))
    print(f"    {sum(sum(k.values()) for k in graph['decode'].values())} kernels of decode steps")


def test_layers_have_shapes(suite):
    """Every GEMM's trace has the shapes of its operands, in a graph too."""
    for mode in ((), ("--graph",)):
        profile = layers_program(suite, "-".join(("shapes",) + mode), "--layers", "4", *mode)
        gemms = [entry for entry in kernel_rows(suite.report(profile)) if re.search("nvjet|gemm|cutlass", entry["name"])]
        bare = [entry["name"] for entry in gemms if not re.search(r"\[\d+, \d+", entry["trace"])]
        check(gemms and not bare, f"{len(bare)} of {len(gemms)} without shapes: {bare[:5]}")
        print(f"    {' '.join(mode) or 'eager'}: {len(gemms)} GEMMs, such as {gemms[0]['trace']}")


def test_compiled_region(suite):
    """A compiled region is one layer, and CUDA graph trees replay into it what runs there without graphs."""
    found, checksums = {}, set()
    for mode in ("default", "reduce-overhead"):
        profile, done = hooked_program(suite, f"compiled-{mode}", "torch_compiled.py", mode)
        found[mode] = kernels_by_class(suite, profile)["steps"]
        checksums.add(done.stdout)
        print(f"    {mode}: " + ", ".join(f"{path or '(no module)'} {sum(kernels.values())}" for path, kernels in found[mode].items()))
    checksums.add(suite.run(torch_program(suite, "torch_compiled.py", "reduce-overhead")).stdout)
    check(len(checksums) == 1, f"results differ: {checksums}")
    plain, graph = found["default"], found["reduce-overhead"]
    region = "Net/Blocks/Torch-Compiled Region"
    check(set(plain) == set(graph) == {"", "Net/Linear", region}, f"{set(plain)} {set(graph)}")
    check(not differences({p: k for p, k in plain.items() if p != region}, {p: k for p, k in graph.items() if p != region}), "outside")
    # Graph trees copy a region's inputs to where the graph reads them, and nothing else is more or less.
    copies = graph[region] - plain[region]
    check(not plain[region] - graph[region] and all(re.search("(?i)memcpy|copy", name) for name in copies), f"{copies}")
    print(f"    copies of graph trees: {dict(copies)}")


def test_steps_found(suite):
    """Without any range of the program's: prefill and decode by the root's input, replays by what was captured."""
    for mode in ((), ("--graph",)):
        report = suite.report(layers_program(suite, "-".join(("found",) + mode), "--layers", "2", "--unnamed", *mode))
        decodes = {key: value["metadata"]["num_running_seqs"] for key, value in report.items() if key.startswith("decode")}
        prefills = report["context"]["lamina"]["prefill_steps"]  # the program warms up first
        # It has a step for each of its decodes, and one more before a capture.
        check(len(decodes) == (6 if mode else 5) and set(decodes.values()) == {4} and len(prefills) == 2, f"{mode}: {decodes} {list(prefills)}")


def test_cupti_taken(suite):
    """torch.profiler in a recorded process: it gets nothing, and both go on."""
    _, done = suite.record("taken", torch_program(suite, "torch_program.py", "--profiler"))
    check("Traceback" not in done.stderr, done.stderr)


def test_profiler_window(suite):
    profile, _ = suite.record("window", torch_program(suite, "torch_program.py", "--cuda-profiler"), LAMINA_COLLECT="profiler")
    activities = suite.activities(profile)
    check(activities and all(entry["phase"] == "work" for entry in activities), "kernels outside of cudaProfilerStart and Stop")


# ---- call stacks and extensions


def extension_program(suite, name):
    """A program of tests/programs/extensions, built for this machine's Python."""
    path = os.path.join(suite.build, "extensions", name)
    if not os.path.exists(path):
        raise Skip(f"{path} is not there: build tests/programs/extensions into it")
    return path


def leaves(nodes, path=()):
    """(path of names, entry) of each row without rows below it."""
    for node in nodes:
        here = path + (node["entry"]["name"],)
        if node["children"]:
            yield from leaves(node["children"], here)
        else:
            yield here, node["entry"]


def call_tree(suite, profile):
    """{path of functions and kernel, without arguments: count} of a program that is all one phase."""
    phases = suite.report(profile)["context"]["lamina"]["phases"]
    rows = collections.Counter()
    for path, entry in leaves(phases["all"]["summary_stats"]):
        if not path[-1].startswith("Mem"):
            rows[" ".join(name.split("(")[0] for name in path)] += int(entry["invocations"])
    return rows


def test_call_trees(suite):
    """A program without ranges: kernels under the functions that launch them, eagerly and replayed, and none harmed."""
    program = extension_program(suite, "two_callers")
    layers = {f"main run_step forward {caller} launch_gemm gemm_kernel": 12 for caller in ("attention", "mlp")}
    alone = "launch_alone launch_gemm gemm_kernel"
    more = {"": {}, "--graph": {}, "--deep 2000": {f"descend {alone}": 2}, "--small-stack": {f"small_stack_thread {alone}": 2},
            "--jit": {f" launch_from_jit {alone}": 2},
            "--throw": {f"main run_throw throw_through launch_and_throw {alone}": 2, f"main run_throw {alone}": 2,
                        f"main run_throw throw_through LaunchWhileUnwinding::~LaunchWhileUnwinding {alone}": 2},
            "--dlclose": {f"main run_plugins run_plugin plugin_run plugin_{name}_kernel": 2 for name in "ab"}}
    for option, expected in more.items():
        command = [program, "3"] + option.split()
        profile, done = suite.record("callers" + option.replace(" ", "-"), command)
        bare = suite.run(command)
        check(done.stdout == bare.stdout, f"{option}: {done.stdout} {bare.stdout}")
        found = call_tree(suite, profile)
        check(found == {**layers, **expected}, f"{option}: {found}")
    print("    " + re.search("call stacks unwound +(.*)", suite.info(profile)).group(1))


def test_launchers(suite):
    """Every way from Python to the driver: the trace of each, eagerly and in a graph."""
    forward = r"\.forward \(launchers_program\.py:\d+\)"
    expected = {
        "nano_scale_kernel": r"scale\(float32\[4096\], float, int\) <- nano_ops.so",
        "stripped_scale_kernel": r"scale\(float32\[4096\], float\) <- stripped_ops.so",
        "triton_scale_kernel": r"launch\(.*float32\[4096\].*\) <- __triton_launcher.so <- TritonKernel" + forward,
        "cupy_scale_kernel": r".*launchKernel <- .*RawKernel.* <- driver.so <- CupyKernel" + forward,
        "ctypes_scale_kernel": r"ctypes_scale <- ctypes_ops.so <- (Ctypes|Cffi)Library" + forward,
        "capi_fill_kernel": r"fill\(int, int, float, int\) <- capi_ops.so",
        "vllm::rotary_embedding_kernel": r"rotary_embedding\(int64\[1\], float32\[1, 128\], .*True\) <- raw_ops.so",
        "vllm::reshape_and_cache_kernel": r"reshape_and_cache\(float32\[1, 2, 64\], .*'auto', float\) <- raw_ops.so",
        "vllm::paged_attention_v1_kernel": r"paged_attention_v1\(float32\[1, 2, 64\], .*\) <- raw_ops.so",
    }
    if suite.run([sys.executable, "-c", "import tvm_ffi"], status=None).returncode == 0:
        expected["tvm_ffi_scale_kernel"] = r"tvm_ffi_scale\b.* <- TvmFfiFunction" + forward
    program = extension_program(suite, "launchers_program.py")
    for mode in ((), ("--graph",)):
        out = suite.folder("-".join(("launchers",) + mode))
        done = suite.run([suite.lamina, "run", "-q", "-o", out, "--", sys.executable, program, *mode])
        check("checksum 2310.000000" in done.stdout, done.stdout)
        report = suite.report(out)
        phases = [value for key, value in report.items() if key != "context"] + list(report["context"]["lamina"].get("phases", {}).values())
        found = {}
        for phase in phases:
            for path, entry in leaves(phase["model_stats"]):
                name = re.sub("^void ", "", entry["name"]).split("(")[0].split("<")[0]
                found.setdefault(name, set()).add((entry["trace"], any("(no module)" in part for part in path)))
        for kernel, trace in expected.items():
            check(kernel in found, f"{mode}: no {kernel} among {sorted(found)}")
            for text, outside in found[kernel]:
                check(re.fullmatch(trace, text) and not outside, f"{mode} {kernel}: {text}")
    print(f"    {len(expected)} kernels")


def test_python_functions(suite):
    """A Python program without ranges: kernels under the functions that launch them, with their lines in full."""
    if suite.run([sys.executable, "-c", "import cupy"], status=None).returncode != 0:
        raise Skip("no CuPy here")
    command = [sys.executable, os.path.join(HERE, "python_functions.py"), "3"]
    profile, done = suite.record("python-functions", command)
    check(done.stdout == suite.run(command).stdout and not done.stderr, done.stdout + done.stderr)
    layer = "<module> main forward Layer"
    found = {re.sub(" +", " ", path): count for path, count in call_tree(suite, profile).items()}
    expected = {f"{layer}.attention scale_kernel": 6, f"{layer}.mlp scale_kernel": 6, f"{layer}.mlp add_kernel": 6}
    check(found == expected, f"{found}")
    full = suite.run([suite.lamina, "table", profile, "--stacks", "full", "--names", "full"]).stdout
    with open(command[1], encoding="utf-8") as file:
        lines = file.read().splitlines()
    line = 1 + next(i for i, text in enumerate(lines) if "kernel((1,)" in text and "for" not in text and "self" not in text)
    check(f"Layer.mlp (python_functions.py:{line})" in full, full)


def test_raw_ops_decode(suite):
    """16 layers with raw kernels in each: all in their layer, with shapes, eagerly and replayed; which library spends what."""
    program = extension_program(suite, "extensions_program.py")
    rows = {}
    for mode in ((), ("--graph",)):
        out = suite.folder("-".join(("raw",) + mode))
        command = [sys.executable, program, *mode]
        done = suite.run([suite.lamina, "run", "-q", "-o", out, "--", *command])
        check(done.stdout == suite.run(command).stdout, "the result differs")
        found = collections.Counter()
        for path, entry in leaves(suite.report(out)["decode_2"]["model_stats"]):
            if entry["name"].startswith("void vllm::"):
                kernel = re.match(r"void vllm::(\w+)_kernel", entry["name"]).group(1)
                check(path[:2] == ("Decoder", "Layer") and re.fullmatch(kernel + r"\(.*bfloat16\[.*\) <- raw_ops.so", entry["trace"]), f"{path} {entry}")
                found[kernel] += 1
        check(found == {name: 16 for name in ("rotary_embedding", "reshape_and_cache", "paged_attention_v1")}, found)
        rows[mode] = phase_rows(suite.report(out), "decode").keys()
        libraries = suite.run([suite.lamina, "table", out, "--phase", "decode", "--table", "library"]).stdout.splitlines()[2:]
        names = {line.split(" | ")[0].strip() for line in libraries}
        check({"raw_ops.so", "libtorch_cuda.so"} <= names and "(not known)" not in names, names)
        print("    " + ", ".join(" ".join(line.split(" | ")[0].split() + [line.split(" | ")[2].strip() + "%"]) for line in libraries))
        layer = re.search(r"in a layer +\d+ \((.*?)%", suite.info(out)).group(1)
        check(layer == "100.00", layer)


def need_two_devices(suite):
    if suite.run(["nvidia-smi", "-L"]).stdout.count("GPU ") < 2:
        raise Skip("one GPU")


def test_two_devices(suite):
    need_two_devices(suite)
    zoo(suite, "two-devices", ["eager_two_devices"])


def test_data_parallel(suite):
    """The replicas' threads have their layers: those of the module, the same kernels as often on each device."""
    need_two_devices(suite)
    profile, done = hooked_program(suite, "data-parallel", "torch_data_parallel.py")
    check(done.stdout == suite.run(torch_program(suite, "torch_data_parallel.py")).stdout, "the result differs")
    by_device = collections.defaultdict(collections.Counter)
    for entry in suite.activities(profile):
        if entry["phase"] == "steps" and entry["record"] == "kernel":
            by_device[entry["device"]]["/".join(layer.split("(")[0] for layer in entry["path"])] += 1
    for device, paths in by_device.items():
        print(f"    device {device}: {dict(paths)}")
    inside = [{path: count for path, count in paths.items() if path.startswith("Sequential/")} for paths in by_device.values()]
    check(len(inside) >= 2 and inside[0] and all(paths == inside[0] for paths in inside), "the devices differ")


sys.exit(traced.main(globals()))
