"""Outputs of `lamina` on the recorded profiles of tests/data, against the files beside this one, with a unified diff.

`golden_test.py --build DIR --update` writes the files anew: look at what git says changed before you commit it.
"""
import difflib
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
}


def lamina(suite, arguments):
    return suite.run(["bash", "-c", 'cd "$1" && shift && exec "$@"', "bash", DATA, suite.lamina] + arguments).stdout


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
