"""Outputs of `lamina` on the recorded profiles of tests/data, against the files beside this one, with a unified diff.

`golden_test.py --build DIR --update` writes the files anew: look at what git says changed before you commit it.
"""
import collections
import difflib
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
}

# Expected file: arguments of `lamina trace`. The file has the beginning of each track.
TIMELINES = {
    "trace.graph.txt": ["h200-graph", "--phase", "decode_7"],
    "trace.eager.txt": ["h200-eager", "--phase", "decode_3"],
    "trace.torch.graph.txt": ["h200-torch-graph", "--phase", "decode_2"],
}
TIMELINE_LINES = 40


def lamina(suite, arguments):
    return suite.run(["bash", "-c", 'cd "$1" && shift && exec "$@"', "bash", DATA, suite.lamina] + arguments).stdout


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
