"""scripts/offline_profile.py on the simulated device, by this Python, which should have PyTorch and transformers:
  PYTHON offline_test.py --build DIR [TEST...]
"""
import csv
import importlib.util
import json
import os
import re
import shutil
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(os.path.dirname(HERE)))
import traced  # pylint: disable=wrong-import-position
from traced import check  # pylint: disable=wrong-import-position

SCRIPT = os.path.join(traced.ROOT, "scripts", "offline_profile.py")
TINY = ["--model", "mistral-tiny", "--device", "cpu"]
LAYERS = 2  # of mistral-tiny; the simulated device runs one kernel in each
BANNERS = ["Prefill Model", "First Decode Step Model", "Prefill Summary", "First Decode Step Summary"]
FIELDS = {"model": ["name", "cpu_time_us", "cuda_time_us", "pct_cuda_time", "trace"],
          "summary": ["name", "cuda_time_us", "pct_cuda_time", "invocations"]}


def profile(suite, *arguments, status=0, device=True, python=(sys.executable,), script=SCRIPT, **variables):
    """Runs the script, on the simulated device if there is to be one."""
    env = dict(suite.clean, LAMINA=suite.lamina, HF_HUB_OFFLINE="1", PYTHONDONTWRITEBYTECODE="1")
    if device and status == 0:
        suite.needs_simulated_cupti(sys.executable)
    if device:
        env.update(PYTHONPATH=os.path.join(HERE, "device"), LD_LIBRARY_PATH=os.path.join(suite.build, "sim"))
    env.update(variables)
    return suite.run([*python, script, *arguments], env, status)


def needs_transformers():
    missing = [name for name in ("torch", "transformers") if importlib.util.find_spec(name) is None]
    if missing:
        raise traced.Skip(f"this Python has no {' and no '.join(missing)}")


def refused(suite, message, *arguments, status=2, **more):
    """One line with the message, and nothing on standard output."""
    done = profile(suite, *arguments, status=status, **more)
    lines = done.stderr.splitlines()
    check(len(lines) == 1 and lines[0].startswith("offline_profile: "), done.stderr)
    check(message in lines[0], f"{arguments}: {done.stderr}")
    check(not done.stdout, done.stdout)


# ---- a whole run


def test_whole_run(suite):
    needs_transformers()
    folder, base = suite.folder("whole"), suite.folder("whole-tables")
    done = profile(suite, *TINY, "--output-len", "3", "--batch-size", "2", "--prompt-len", "8", "-o", folder,
                   "--json", base, "--csv", base + ".csv", "--tokenizer", "7")
    check_tables(done.stdout, "(prompt_len=8, batch_size=2)", BANNERS)
    with open(base + ".json", encoding="utf-8") as file:
        report = json.load(file)
    check_steps(report)
    check_context(report["context"])
    for phase, step in (("prefill", "prefill"), ("decode", "decode_1")):
        for table, fields in FIELDS.items():
            check_csv(f"{base}_{phase}_{table}_table.csv", fields, report[step][f"{table}_stats"])


def check_tables(text, lengths, banners):
    rule = "=" * 80
    found = re.findall(rf"^{rule}\n= (.*) Table (.*)\n{rule}\n\n(name .*\n(?:.+\n)*)", text, re.M)
    check([banner for banner, _, _ in found] == banners, text)
    for banner, given, table in found:
        check(given == lengths, given)
        root = next(line for line in table.splitlines() if line.startswith("MistralForCausalLM"))
        times = [float(cell) for cell in root.split("|")[1:3]]
        check(times[0] > 0, f"{banner}: {root}")
        if "Model" in banner:
            check(times[1] == LAYERS, f"{banner}: {root}")
        check("|- MistralModel" in table and "gemm(float*)" in table, table)


def check_steps(report):
    """The warm-up is no step: one prefill, and two decode steps with one kernel a layer."""
    steps = [key for key in report if key != "context"]
    check(steps == ["prefill", "decode_1", "decode_2"], steps)
    for step in steps:
        roots = report[step]["summary_stats"]
        check([root["entry"]["name"] for root in roots] == ["MistralForCausalLM"], roots)
        check(roots[0]["entry"]["invocations"] == 1 and roots[0]["entry"]["cuda_time_us"] == LAYERS, roots[0]["entry"])
    startup = report["context"]["lamina"]["phases"]
    check(list(startup) == ["startup"], startup.keys())


def check_context(context):
    import torch  # pylint: disable=import-outside-toplevel

    expected = {"python_version": sys.version, "torch_version": torch.__version__,
                "torch_cuda_version": torch.version.cuda,
                "prompt_len": 8, "output_len": 3, "batch_size": 2, "num_steps": 3, "dtype": "auto", "tokenizer": "7",
                "model_revision": None, "quantization": None, "max_model_len": None, "max_num_batched_tokens": None,
                "allow_cuda_graphs": False, "complete_num_requests_per_step": None, "save_chrome_traces_folder": None}
    for key, value in expected.items():
        check(key in context and context[key] == value, f"{key}: {context.get(key)!r}, not {value!r}")
    arguments = context["engine_args"]
    check(arguments["model"] == "mistral-tiny" and arguments["tensor_parallel_size"] == 1, arguments)
    check("Simulated GPU" in context["cuda_devices"], context["cuda_devices"])


def check_csv(path, fields, nodes):
    with open(path, encoding="utf-8", newline="") as file:
        text = file.read()
    check(text.count("\r\n") == text.count("\n"), f"{path} is not RFC 4180")
    rows = list(csv.reader(text.splitlines()))
    check(rows[0] == ["", *fields, "depth", "path"], rows[0])
    expected = list(entries(nodes))
    check(len(rows) - 1 == len(expected) > 10, f"{len(rows)} rows, {len(expected)} nodes")
    for index, (row, (entry, depth)) in enumerate(zip(rows[1:], expected)):
        check(row[:-1] == [str(value) for value in (index, *(entry[field] for field in fields), depth)], row)
    paths = [row[-1] for row in rows[1:]]
    deep = "MistralForCausalLM.model.layers.1.mlp/gemm(float*)" if "trace" in fields else \
        "MistralForCausalLM/MistralModel/MistralDecoderLayer/MistralMLP/gemm(float*)"
    check(deep in paths, paths)


def entries(nodes, depth=0):
    for node in nodes:
        yield node["entry"], depth
        yield from entries(node["children"], depth + 1)


def test_prefill_only(suite):
    needs_transformers()
    base = suite.folder("prefill-only")
    done = profile(suite, *TINY, "--output-len", "1", "--prompt-len", "8", "-o", base, "--csv", base)
    check_tables(done.stdout, "(prompt_len=8, batch_size=1)", [BANNERS[0], BANNERS[2]])
    check(not os.path.exists(base + "_decode_model_table.csv"), "a table of a phase that there was not")


def test_model_of_a_folder(suite):
    needs_transformers()
    import transformers  # pylint: disable=import-outside-toplevel

    model = suite.folder("a model")
    config = transformers.MistralConfig(num_hidden_layers=3, hidden_size=32, num_attention_heads=2,
                                        num_key_value_heads=1, intermediate_size=64, vocab_size=128,
                                        max_position_embeddings=64)
    transformers.AutoModelForCausalLM.from_config(config).save_pretrained(model)
    done = profile(suite, "--model", model, "--device", "cpu", "--prompt-len", "8", "--num-hidden-layers", str(LAYERS),
                   "-o", suite.folder("of-folder"), "--dtype", "half")
    check_tables(done.stdout, "(prompt_len=8, batch_size=1)", BANNERS)
    check("float16[128, 32]" in done.stdout, "not the dtype that was asked for")
    refused(suite, "(63 + 2 = 65) is more than max_model_len (64)", "--model", model, "--prompt-len", "63")
    refused(suite, "max_model_len (65) is more than the model's own (64)", "--model", model, "--max-model-len", "65",
            "--prompt-len", "8")
    done = profile(suite, "--model", model, "--device", "cpu", "--prompt-len", "8", "--quantization", "gptq",
                   "-o", suite.folder("quantized"), status=2)
    check("quantization gptq" in done.stderr and "Traceback" not in done.stderr, done.stderr)


# ---- refusals


def test_refusals(suite):
    """With a Python that has no PyTorch: they come before anything is loaded."""
    def case(message, *arguments):
        refused(suite, message, *arguments, python=(sys.executable, "-S"))

    case("(4 * 256 = 1024) is more than max_num_batched_tokens (1023)",
         "--batch-size", "4", "--max-num-batched-tokens", "1023")
    case("(256 + 45 = 301) is more than max_model_len (300)", "--output-len", "45", "--max-model-len", "300")
    case("(1023 + 2 = 1025) is more than max_model_len (1024)", *TINY, "--prompt-len", "1023")
    for name in ("batch-size", "prompt-len", "output-len", "tensor-parallel-size", "num-hidden-layers"):
        case(f"{name.replace('-', '_')} must be at least 1, not 0", f"--{name}", "0")
    case("tensor_parallel_size (3) is more than the GPUs here (2)", "-tp", "3")
    case("needs --engine vllm", "-tp", "2")
    case("--engine vllm needs a --model", "--engine", "vllm")
    case("--allow-cuda-graphs needs --device cuda", *TINY, "--allow-cuda-graphs")
    case("has random ones", "--quantization", "bitsandbytes")


def test_files_are_not_overwritten(suite):
    needs_transformers()
    base, folder = suite.folder("kept"), suite.folder("kept-profile")
    for path in (base + ".json", base + "_decode_model_table.csv"):
        with open(path, "w", encoding="utf-8") as file:
            file.write("mine")
    refused(suite, f"{base}.json is there already", *TINY, "--json", base)
    refused(suite, f"{base}_decode_model_table.csv is there already", *TINY, "--csv", base)
    refused(suite, "is no folder", *TINY, "--json", os.path.join(base, "file"))
    short = [*TINY, "--prompt-len", "8", "-o", folder]
    profile(suite, *short, "--json", base, "--csv", base, "--force")
    with open(base + ".json", encoding="utf-8") as file:
        check("prefill" in json.load(file), "not overwritten")
    refused(suite, f"{folder} is there already", *short)


# ---- what is missing


def test_missing_lamina(suite):
    refused(suite, "scripts/quickstart", status=1, script=copy_of_the_script(suite), LAMINA="", PATH="/nothing")
    refused(suite, "LAMINA=/nothing", status=1, LAMINA="/nothing")


def copy_of_the_script(suite):
    folder = os.path.join(suite.folder("elsewhere"), "scripts")
    shutil.copytree(SCRIPT.removesuffix(".py"), os.path.join(folder, "offline_profile"))
    return shutil.copy(SCRIPT, folder)


def test_missing_packages(suite):
    bare = (sys.executable, "-S")
    refused(suite, "has no torch and no transformers: install", *TINY, status=1, python=bare)
    packages = suite.folder("packages")
    os.makedirs(os.path.join(packages, "torch"))
    with open(os.path.join(packages, "torch", "__init__.py"), "w", encoding="utf-8") as file:
        file.write("raise SystemExit('imported')")
    refused(suite, "has no transformers: install", *TINY, status=1, python=bare, PYTHONPATH=packages)
    refused(suite, "has no vllm: install", "--engine", "vllm", "--model", "x", status=1, python=bare,
            PYTHONPATH=packages)


def test_without_a_device(suite):
    needs_transformers()
    done = profile(suite, *TINY, "--prompt-len", "8", "-o", suite.folder("none"), status=1, device=False)
    check("nothing was recorded, since nothing ran on a GPU" in done.stderr, done.stderr)
    done = profile(suite, "--model", "mistral-tiny", "-o", suite.folder("none"), status=1, device=False,
                   CUDA_VISIBLE_DEVICES="")
    check("no CUDA GPU here" in done.stderr and "Traceback" not in done.stderr, done.stderr)


if __name__ == "__main__":
    sys.exit(traced.main(globals()))
