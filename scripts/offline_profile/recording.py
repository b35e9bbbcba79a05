"""Runs the model's process under `lamina run`."""
import datetime
import importlib.metadata
import importlib.util
import json
import os
import re
import runpy
import shutil
import subprocess
import sys

from offline_profile.failure import Failure

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def find_lamina():
    named = os.environ.get("LAMINA")
    if named:
        found = shutil.which(named)
        if not found:
            raise Failure(f"LAMINA={named} is no program that can be run")
        return found
    built = os.path.join(ROOT, "build", "bin", "lamina")
    found = built if os.access(built, os.X_OK) else shutil.which("lamina")
    if not found:
        raise Failure(f"the lamina command is neither {built} nor in PATH: build it with scripts/quickstart, or name "
                      "it in the variable LAMINA")
    return found


def default_profile(model):
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", os.path.basename(os.path.normpath(model)))
    return f"lamina-{name}-{datetime.datetime.now():%Y%m%d-%H%M%S}-{os.getpid()}"


def record(lamina, profile, options):
    command = [lamina, "run", "--output", profile]
    for key, value in context(options).items():
        command += ["--context", f"{key}={json.dumps(value)}"]
    command += ["--", sys.executable, os.path.abspath(sys.argv[0]), "--worker", *sys.argv[1:]]
    # What the model's libraries print is not part of the tables.
    status = subprocess.run(command, stdout=sys.stderr, check=False).returncode
    if status == 2:  # refused, and said why
        raise SystemExit(status)
    if status != 0:
        raise Failure(f"the model's process ended with status {status}", status if status > 0 else 1)
    if not os.path.isdir(profile) or not os.listdir(profile):
        raise Failure("nothing was recorded, since nothing ran on a GPU" if options.device == "cpu" else
                      "nothing was recorded (see above)")


def run_facts(options):
    facts = ("model", "tokenizer", "model_revision", "quantization", "max_model_len", "max_num_batched_tokens",
             "prompt_len", "output_len", "batch_size", "dtype", "tensor_parallel_size", "allow_cuda_graphs", "engine",
             "device", "num_hidden_layers")
    return {name: getattr(options, name) for name in facts}


def context(options):
    """Both forms of the layerwise JSON: engine_args, and beside it what older files have flat. Devices are recorded."""
    torch = torch_version()
    facts = run_facts(options)
    arguments = {"model": facts.pop("model"), "tokenizer": facts["tokenizer"], "revision": facts["model_revision"],
                 "tensor_parallel_size": facts.pop("tensor_parallel_size"), "quantization": facts["quantization"],
                 "dtype": facts["dtype"], "max_model_len": facts["max_model_len"],
                 "max_num_batched_tokens": facts["max_num_batched_tokens"],
                 "enforce_eager": not facts["allow_cuda_graphs"]}
    return {"python_version": sys.version, "torch_version": torch.get("__version__"),
            "torch_cuda_version": torch.get("cuda"), f"{options.engine}_version": version(options.engine),
            "engine_args": arguments, "num_steps": facts["output_len"], **facts}


def torch_version():
    """Of the installed PyTorch, which takes seconds to import and is not needed here."""
    folder = os.path.dirname(importlib.util.find_spec("torch").origin or "")
    try:
        return runpy.run_path(os.path.join(folder, "version.py"))
    except OSError:
        return {"__version__": version("torch")}


def version(package):
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None
