"""Outputs of `lamina` on the recorded profiles of tests/data, against the files beside this one, with a unified diff.

`golden_test.py --build DIR --update` writes the files anew: look at what git says changed before you commit it.
"""
import collections
import csv
import difflib
import io
import json
import os
import re
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))
import traced  # pylint: disable=wrong-import-position
from trace_check import Timeline, read  # pylint: disable=wrong-import-position
from traced import check  # pylint: disable=wrong-import-position

DATA = os.path.join(os.path.dirname(HERE), "data")
UPDATE = "--update" in sys.argv
# Expected file: arguments of lamina, in the folder of the data.
OUTPUTS = {
    "eager.decode.summary.txt": ["table", "h200-eager", "--phase", "decode"],
    "eager.prefill.summary.txt": ["table", "h200-eager", "--phase", "prefill"],
    "eager.decode_3.model.txt": ["table", "h200-eager", "--phase", "decode_3", "--table", "model"],
    "eager.info.txt": ["info", "h200-eager"],
    "torch.decode_2.model.txt": ["table", "h200-torch", "--phase", "decode_2", "--table", "model"],
    "torch.graph.decode_2.model.txt": ["table", "h200-torch-graph", "--phase", "decode_2", "--table", "model"],
    "callers.txt": ["table", "h200-callers"],
    "python.stacks.txt": ["table", "h200-python", "--stacks", "full", "--names", "full"],
    "python.model.txt": ["table", "h200-python", "--table", "model", "--names", "full"],
    "callers.model.txt": ["table", "h200-callers", "--table", "model", "--names", "full"],
    "callers.stacks.txt": ["table", "h200-callers", "--stacks", "full", "--names", "full"],
    "raw_ops.decode_2.model.txt": ["table", "h200-raw-ops", "--phase", "decode_2", "--table", "model"],
    "raw_ops.library.txt": ["table", "h200-raw-ops", "--phase", "decode", "--table", "library"],
    "raw_ops.info.txt": ["info", "h200-raw-ops"],
    "graph.all.txt": ["table", "h200-graph"],
    "graph.decode.model.txt": ["table", "h200-graph", "--phase", "decode", "--table", "model"],
    "graph.info.txt": ["info", "h200-graph"],
    "graph.decode.kernel.txt": ["table", "h200-graph", "--phase", "decode", "--table", "kernel"],
    "torch.decode_2.kernel.txt": ["table", "h200-torch", "--phase", "decode_2", "--table", "kernel", "--names", "short"],
    "torch.decode_2.short.txt": ["table", "h200-torch", "--phase", "decode_2", "--names", "short"],
    "torch.decode_2.model.short.txt": ["table", "h200-torch", "--phase", "decode_2", "--table", "model", "--names", "short"],
    "graph.decode.kernel.csv": ["csv", "h200-graph", "--phase", "decode", "--table", "kernel"],
    "graph.decode.summary.csv": ["csv", "h200-graph", "--phase", "decode", "--table", "summary"],
    "raw_ops.library.csv": ["csv", "h200-raw-ops", "--phase", "decode", "--table", "library"],
    "diff.graph.txt": ["diff", "h200-eager", "h200-graph"],
    "diff.graph.tree.txt": ["diff", "h200-eager", "h200-graph", "--phase", "decode", "--all", "--names", "full"],
    "diff.torch.txt": ["diff", "h200-torch", "h200-torch-graph", "--phase", "decode"],
    "diff.torch.prefill.txt": ["diff", "h200-torch", "h200-torch-graph", "--phase", "prefill", "--all"],
    "diff.apples.txt": ["diff", "h200-torch", "h200-eager", "--phase", "prefill"],
    "diff.changed.txt": ["diff", "diff-before.json", "diff-after.json"],
    "diff.changed.tree.txt": ["diff", "diff-before.json", "diff-after.json", "--phase", "decode", "--all"],
    "diff.changed.json": ["diff", "diff-before.json", "diff-after.json", "--phase", "decode_2", "--format", "json"],
    "diff.old.txt": ["diff", "layerwise-old.json", "diff-before.json"],
    "old.decode.txt": ["table", "layerwise-old.json", "--phase", "decode"],
    "graph.decode.idle.txt": ["table", "h200-graph", "--phase", "decode", "--idle"],
    "torch.idle.txt": ["table", "h200-torch", "--idle"],
    "torch.decode_2.idle.txt": ["table", "h200-torch", "--phase", "decode_2", "--idle"],
    "torch.graph.info.txt": ["info", "h200-torch-graph"],
}

# Expected file: arguments of `lamina trace`. The file has the beginning of each track.
TIMELINES = {
    "trace.graph.txt": ["h200-graph", "--phase", "decode_7"],
    "trace.eager.txt": ["h200-eager", "--phase", "decode_3"],
    "trace.torch.graph.txt": ["h200-torch-graph", "--phase", "decode_2"],
}
TIMELINE_LINES = 40


def lamina(suite, arguments, status=0):
    return run_lamina(suite, arguments, status).stdout


def run_lamina(suite, arguments, status=0):
    return suite.run(["bash", "-c", 'cd "$1" && shift && exec "$@"', "bash", DATA, suite.lamina] + arguments, status=status)


def compare(name, actual, arguments):
    path = os.path.join(HERE, name)
    if UPDATE:
        with open(path, "w", encoding="utf-8") as file:
            file.write(actual)
    with open(path, encoding="utf-8") as file:
        expected = file.read()
    difference = "".join(difflib.unified_diff(expected.splitlines(True), actual.splitlines(True), name, "lamina " + " ".join(arguments)))
    check(not difference, difference)


def test_outputs(suite):
    for name, arguments in OUTPUTS.items():
        compare(name, lamina(suite, arguments), arguments)


def timeline(suite, arguments):
    """What `lamina trace` writes, which has to keep to the format."""
    result = Timeline(lamina(suite, ["trace", *arguments, "-o", "-"]))
    check(not result.problems, "\n".join(result.problems[:10]))
    return result


def test_timelines(suite):
    for name, arguments in TIMELINES.items():
        compare(name, timeline(suite, arguments).outline(TIMELINE_LINES), ["trace", *arguments])


def test_timelines_have_every_kernel(suite):
    """Kernels on the GPU tracks are those of the dump, each in the layers that the dump says."""
    for profile in ("h200-eager", "h200-graph", "h200-torch", "h200-torch-graph", "h200-raw-ops", "h200-callers", "h200-python"):
        drawn = collections.Counter()
        for slices in timeline(suite, [profile, "--names", "full"]).slices.values():
            layers = [piece.args["layer"] for piece in slices if "correlation" in piece.args]
            kernels = [piece for piece in slices if "correlation" in piece.args]
            drawn.update((piece.name, piece.end - piece.begin, piece.args["correlation"]) for piece in kernels)
            check(all(layers), f"{profile}: a kernel without its layer")
        dump = map(json.loads, lamina(suite, ["dump", profile]).splitlines())
        recorded = collections.Counter((entry["name"], entry["duration_ns"], entry["correlation"])
                                       for entry in dump if entry["record"] in ("kernel", "memcpy", "memset"))
        check(drawn == recorded, f"{profile}: {drawn - recorded} more, {recorded - drawn} missing")


def test_timeline_layers_lie_over_their_kernels(suite):
    """On the first track of a stream what lies over a kernel is its layer path, below the step."""
    for profile in ("h200-eager", "h200-graph", "h200-torch-graph"):
        result = timeline(suite, [profile])
        for (_, name), slices in result.tracks().items():
            around, seen = [], 0
            for piece in slices:
                while around and around[-1].end <= piece.begin:
                    around.pop()
                if "layer" in piece.args and "overlapping" not in name:
                    over = " / ".join(outer.name for outer in around if outer.category == "layer")
                    check(over == piece.args["layer"] or (not over and piece.args["layer"] == "(no module)"), f"{over} lies over {piece}")
                    check(around[0].category == "phase", f"{piece} is in no step")
                    seen += 1
                around.append(piece)
            check(seen or not name.startswith("stream") or "overlapping" in name, f"no kernels on {name}")


def test_timeline_files(suite):
    """gzip and plain files say the same; nothing is overwritten, and nothing left behind that is not whole."""
    profile = os.path.join(DATA, "h200-raw-ops")
    folder = suite.folder("timeline_files")
    os.mkdir(folder)
    for name in ("a.json", "a.json.gz"):
        suite.run([suite.lamina, "trace", profile, "-o", os.path.join(folder, name)])
        suite.run([suite.lamina, "trace", profile, "-o", os.path.join(folder, name)], status=2)
        suite.run([suite.lamina, "trace", profile, "-o", os.path.join(folder, name), "--force"])
    check(read(os.path.join(folder, "a.json")) == read(os.path.join(folder, "a.json.gz")), "the two differ")
    for arguments, status, message in ((["--phase", "nope"], 1, "it has"), (["--rank", "3"], 1, "no rank 3")):
        done = suite.run([suite.lamina, "trace", profile, "-o", os.path.join(folder, "b.json"), *arguments], status=status)
        check(message in done.stderr and done.stderr.count("\n") == 1, done.stderr)
    check(sorted(os.listdir(folder)) == ["a.json", "a.json.gz"], os.listdir(folder))


def rows(nodes, path=()):
    for node in nodes:
        entry = node["entry"]
        yield path + (entry["name"],), entry["invocations"]
        yield from rows(node["children"], path + (entry["name"],))


def test_modes_agree(suite):
    """On the H200 the same kernels ran as often in each layer, launched one by one and from a replayed graph."""
    reports = [json.loads(lamina(suite, ["json", profile, "-o", "-"])) for profile in ("h200-eager", "h200-graph")]
    for step in range(1, 9):
        eager, graph = (sorted(rows(report[f"decode_{step}"]["summary_stats"])) for report in reports)
        check(eager == graph and len(eager) > 30, f"decode_{step} differs")


def test_rows_add_up(suite):
    """The roots of all phases together are the sum of all activity in the dump."""
    for profile in ("h200-eager", "h200-graph", "h200-torch", "h200-torch-graph"):
        report = json.loads(lamina(suite, ["json", profile, "-o", "-"]))
        phases = [value for key, value in report.items() if key != "context"] + list(report["context"]["lamina"]["phases"].values())
        total = sum(root["entry"]["cuda_time_us"] for phase in phases for root in phase["model_stats"])
        dump = map(json.loads, lamina(suite, ["dump", profile]).splitlines())
        recorded = sum(entry["duration_ns"] for entry in dump if entry["record"] in ("kernel", "memcpy", "memset")) / 1000
        check(abs(total - recorded) < 1e-6 * recorded, f"{profile}: rows {total} us, dump {recorded} us")


def csv_rows(text):
    return list(csv.DictReader(io.StringIO(text, newline="")))


def nodes_of(roots, depth=0):
    for node in roots:
        yield depth, node["entry"]
        yield from nodes_of(node["children"], depth + 1)


def test_csv_is_the_json(suite):
    """Each row of a step's CSV is the JSON's entry, field by field."""
    for profile in ("h200-graph", "h200-torch"):
        step = json.loads(lamina(suite, ["json", profile, "-o", "-"]))["decode_2"]
        for table in ("summary", "model"):
            rows_there = csv_rows(lamina(suite, ["csv", profile, "--phase", "decode_2", "--table", table]))
            expected = list(nodes_of(step[f"{table}_stats"]))
            check(len(rows_there) == len(expected) > 30, f"{profile} {table}: {len(rows_there)} rows, {len(expected)} nodes")
            for index, (row, (depth, entry)) in enumerate(zip(rows_there, expected)):
                fields = {key: str(value) for key, value in entry.items()} | {"": str(index), "depth": str(depth)}
                check(row == fields | {"path": row["path"]} and row["path"], f"{profile} {table} {index}: {row}")


def test_kernels_are_the_dump(suite):
    """Counts, sums, shortest and longest of the kernel table are those of the single records."""
    for profile in ("h200-graph", "h200-torch", "h200-raw-ops"):
        recorded = {}
        for entry in map(json.loads, lamina(suite, ["dump", profile]).splitlines()):
            if entry["record"] == "kernel":
                recorded.setdefault(entry["name"], []).append(entry["duration_ns"] / 1000)
        shown = {}
        for phase in re.findall(r"^== (.*): kernel", lamina(suite, ["table", profile, "--table", "kernel"]), re.M):
            for row in csv_rows(lamina(suite, ["csv", profile, "--phase", phase, "--table", "kernel"])):
                shown.setdefault(row["name"], []).append({key: float(row[key]) for key in ("count", "total_us", "min_us", "max_us")})
        for name, durations in recorded.items():
            parts = shown[name]
            found = [sum(part["count"] for part in parts), sum(part["total_us"] for part in parts),
                     min(part["min_us"] for part in parts), max(part["max_us"] for part in parts)]
            expected = [len(durations), sum(durations), min(durations), max(durations)]
            check(all(abs(a - b) < 1e-6 * b for a, b in zip(found, expected)), f"{profile} {name}: {found}, dump {expected}")


def test_csv_files(suite):
    """All tables of all phases at once, and nothing where one of them is there."""
    base = suite.folder("csv") + "/run"
    os.makedirs(os.path.dirname(base), exist_ok=True)
    run_lamina(suite, ["csv", "h200-graph", "-o", base])
    files = sorted(os.listdir(os.path.dirname(base)))
    for expected in ("run_prefill_summary_table.csv", "run_decode_model_table.csv", "run_decode_kernel_table.csv", "run__none__summary_table.csv"):
        check(expected in files, f"no {expected}: {files}")
    for table in ("summary", "model", "kernel"):
        with open(f"{base}_decode_{table}_table.csv", encoding="utf-8") as file:
            check(file.read() == lamina(suite, ["csv", "h200-graph", "--phase", "decode", "--table", table]), f"{table}: not what goes to stdout")
    for name in files[1:]:
        os.remove(os.path.join(os.path.dirname(base), name))
    refused = run_lamina(suite, ["csv", "h200-graph", "-o", base], status=2)
    check(f"{files[0]} exists" in refused.stderr and os.listdir(os.path.dirname(base)) == files[:1], refused.stderr)
    run_lamina(suite, ["csv", "h200-graph", "-o", base, "--force"])
    check(sorted(os.listdir(os.path.dirname(base))) == files, "not all again")


def test_csv_refusals(suite):
    def case(message, *arguments, status=2):
        refused = run_lamina(suite, list(arguments), status=status)
        check(message in refused.stderr and len(refused.stderr.splitlines()) == 1 and not refused.stdout, f"{arguments}: {refused.stderr}")

    case("give one of startup, ", "csv", "h200-graph", "--table", "summary")
    case("is of whole phases", "csv", "h200-graph", "--table", "library", "--phase", "decode_2")
    case("no phase 'x' in h200-graph: it has ", "csv", "h200-graph", "--phase", "x", status=1)
    case("no such profile", "csv", "nowhere", status=1)
    case("/nowhere/x", "csv", "h200-graph", "-o", "/nowhere/x", status=1)
    case("--groups: only", "table", "h200-graph", "--groups", "x")
    case("kernel_names.tsv: ", "table", "h200-graph", "--table", "kernel", "--groups", "kernel_names.tsv", status=1)
def messages(suite, arguments, status):
    done = suite.run(["bash", "-c", 'cd "$1" && shift && exec "$@"', "bash", DATA, suite.lamina] + arguments, status=status)
    return done.stderr


def test_diff_status(suite):
    """0: not slower, or not asked for; 1: slower than allowed, or bad input, and the message tells which; 2: wrong usage."""
    decode = ["diff", "h200-eager", "h200-graph", "--phase", "decode"]
    check(messages(suite, decode + ["--fail-over", "1%"], 0) == "", "within the limit")
    check(messages(suite, decode[:1] + decode[2:0:-1] + decode[3:] + ["--fail-over", "0"], 0) == "", "faster")
    text = messages(suite, decode + ["--fail-over", "0.1%"], 1)
    check(text.startswith("lamina: slower than --fail-over 0.1% allows: decode by 0.42% (noise 0."), text)
    text = messages(suite, decode + ["--fail-over-layer", "10%"], 1)
    check(text.startswith("lamina: slower than --fail-over-layer 10% allows: decode > LlamaForCausalLM > LlamaModel > layers.* > mlp > act_fn by 12.75%"), text)
    text = messages(suite, ["diff", "h200-torch", "h200-torch-graph", "--phase", "prefill", "--fail-over", "5%"], 1)
    check("prefill by 57.48% (noise not known: a single step)" in text, text)
    text = messages(suite, ["diff", "h200-eager", "h200-raw-ops", "--fail-over", "500%"], 0)
    check("phase 'prefill' is in one of the two alone: not checked" in text, text)
    for arguments, status, part in (
            (["diff", "h200-eager"], 2, "AFTER"),
            (decode + ["--fail-over", "much"], 2, "'much' is no percentage"),
            (decode + ["--fail-over=-1%"], 2, "'-1%' is no percentage"),
            (decode + ["--rank", "0", "--rank", "0", "--rank", "0"], 2, "--rank"),
            (decode + ["--format", "yaml"], 2, "--format"),
            (["diff", "h200-eager", "nowhere"], 1, "nowhere: no such profile"),
            (["diff", "h200-eager", "h200-graph", "--phase", "warm"], 1, "no phase 'warm' in h200-eager"),
            (["diff", "h200-callers", "layerwise-sample.json", "--fail-over", "5"], 1, "nothing to compare"),
            (["diff", "no-time.json", "h200-eager", "--phase", "decode", "--fail-over", "5"], 1, "nothing was checked"),
            (["diff", "h200-eager", os.path.join(HERE, "golden_test.py")], 1, "golden_test.py: not JSON")):
        text = messages(suite, arguments, status)
        check(part in text and "slower than" not in text and text.count("\n") == 1, f"{arguments}: {text}")


def test_diff_output(suite):
    """-o writes what would be printed, and overwrites nothing."""
    path = suite.folder("diff.txt")
    arguments = ["diff", "diff-before.json", "diff-after.json"]
    check(messages(suite, arguments + ["-o", path], 0) == f"lamina: wrote {path}\n", "message")
    with open(path, encoding="utf-8") as file:
        check(file.read() == lamina(suite, arguments + ["-o", "-"]), "file and standard output differ")
    check("exists" in messages(suite, arguments + ["-o", path], 2), "overwritten")
    messages(suite, arguments + ["-o", path, "--force"], 0)


def test_diff_adds_up(suite):
    """Rows of each level add up to their parent, roots to the phase, and the phase to what the profile holds."""
    def check_rows(rows, total, place):
        if rows:
            change = sum(row["change_us"] for row in rows)
            check(abs(change - total) < 1e-6 * max(1, abs(total)), f"{place}: rows {change}, whole {total}")
        for row in rows:
            check_rows(row["children"], row["change_us"], place + str(row["names_after"] or row["names_before"]))

    for before, after in (("h200-eager", "h200-graph"), ("h200-torch", "h200-torch-graph"), ("diff-before.json", "diff-after.json")):
        change = json.loads(lamina(suite, ["diff", before, after, "--format", "json"]))
        check(change["phases"], "no phase")
        for phase in change["phases"]:
            check_rows(phase["layers"], phase["change_us"], phase["name"])
            shares = sum(row["share_pct"] for row in phase["layers"])
            check(abs(shares - 100) < 1e-6, f"{phase['name']}: shares {shares}")


def test_readable_by_others(suite):
    """What vLLM's printer and plotter ask of a file, held to `lamina json` of every profile: context first, then prefill and
    decode steps and nothing else, records of exactly their fields, and the keys of the plotter's title."""
    summary = ["name", "cuda_time_us", "pct_cuda_time", "invocations"]
    model = ["name", "cpu_time_us", "cuda_time_us", "pct_cuda_time", "trace"]

    def check_nodes(nodes, fields):
        for node in nodes:
            check(list(node["entry"]) == fields and "children" in node, str(node["entry"]))
            check_nodes(node["children"], fields)

    for profile in ("h200-eager", "h200-graph", "h200-torch", "h200-torch-graph", "h200-raw-ops", "h200-callers", "layerwise-old.json", "layerwise-sample.json"):
        text = lamina(suite, ["json", profile, "-o", "-"])
        check("NaN" not in text and "Infinity" not in text, f"{profile}: no JSON")
        report = json.loads(text)
        context, *steps = report
        check(context == "context" and all(re.fullmatch(r"prefill|decode_\d+", step) for step in steps), f"{profile}: {list(report)}")
        for key in ("prompt_len", "batch_size", "num_steps", "complete_num_requests_per_step", "engine_args"):
            check(key in report["context"], f"{profile}: no {key}")
        for key in ("model", "tensor_parallel_size"):
            check(key in report["context"]["engine_args"], f"{profile}: no engine_args.{key}")
        for step in steps:
            check(list(report[step]) == ["metadata", "summary_stats", "model_stats"], f"{profile}: {list(report[step])}")
            check("num_running_seqs" in report[step]["metadata"] and report[step]["summary_stats"], f"{profile}: {step} can not be drawn")
            check_nodes(report[step]["summary_stats"], summary)
            check_nodes(report[step]["model_stats"], model)


def test_readme(suite):
    """The tables in README are what the commands print. `--update` writes them anew."""
    path = os.path.join(os.path.dirname(os.path.dirname(HERE)), "README.md")
    with open(path, encoding="utf-8") as file:
        readme = file.read()
    blocks = re.findall(r"<!-- lamina (.*?) -->\n```\n(.*?)```\n", readme, re.S)
    check(blocks, "no table in README")
    for command, shown in blocks:
        arguments = [argument.replace("tests/data/", "") for argument in command.split()]
        actual = lamina(suite, arguments)
        if UPDATE:
            block = "<!-- lamina " + command + " -->\n```\n{}```\n"
            readme = readme.replace(block.format(shown), block.format(actual))
            with open(path, "w", encoding="utf-8") as file:
                file.write(readme)
        else:
            check(shown == actual, f"README shows another `lamina {command}`: run this test with --update")


sys.argv = [argument for argument in sys.argv if argument != "--update"]
sys.exit(traced.main(globals()))
