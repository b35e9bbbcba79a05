"""Outputs of `lamina` on the recorded profiles of tests/data, against the files beside this one, with a unified diff.

`golden_test.py --build DIR --update` writes the files anew: look at what git says changed before you commit it.
"""
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
    "graph.decode.idle.txt": ["table", "h200-graph", "--phase", "decode", "--idle"],
    "torch.idle.txt": ["table", "h200-torch", "--idle"],
    "torch.decode_2.idle.txt": ["table", "h200-torch", "--phase", "decode_2", "--idle"],
    "torch.graph.info.txt": ["info", "h200-torch-graph"],
    "graph.decode.kernel.txt": ["table", "h200-graph", "--phase", "decode", "--table", "kernel"],
    "torch.decode_2.kernel.txt": ["table", "h200-torch", "--phase", "decode_2", "--table", "kernel", "--names", "short"],
    "torch.decode_2.short.txt": ["table", "h200-torch", "--phase", "decode_2", "--names", "short"],
    "torch.decode_2.model.short.txt": ["table", "h200-torch", "--phase", "decode_2", "--table", "model", "--names", "short"],
    "graph.decode.kernel.csv": ["csv", "h200-graph", "--phase", "decode", "--table", "kernel"],
    "graph.decode.summary.csv": ["csv", "h200-graph", "--phase", "decode", "--table", "summary"],
    "raw_ops.library.csv": ["csv", "h200-raw-ops", "--phase", "decode", "--table", "library"],
}


def lamina(suite, arguments, status=0):
    return run_lamina(suite, arguments, status).stdout


def run_lamina(suite, arguments, status=0):
    return suite.run(["bash", "-c", 'cd "$1" && shift && exec "$@"', "bash", DATA, suite.lamina] + arguments, status=status)


def test_outputs(suite):
    for name, arguments in OUTPUTS.items():
        actual = lamina(suite, arguments)
        path = os.path.join(HERE, name)
        if UPDATE:
            with open(path, "w", encoding="utf-8") as file:
                file.write(actual)
        with open(path, encoding="utf-8") as file:
            expected = file.read()
        difference = "".join(difflib.unified_diff(expected.splitlines(True), actual.splitlines(True), name, "lamina " + " ".join(arguments)))
        check(not difference, difference)


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
