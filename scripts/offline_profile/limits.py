"""What is refused: a run that would measure something else than one prefill and its decode steps, or can not work."""
import ctypes
import importlib.util
import json
import os
import sys

from offline_profile.arguments import BITS, BUILT_IN
from offline_profile.failure import Failure, refusal


def check_arguments(options):
    """Before anything is loaded."""
    for name in ("prompt_len", "output_len", "batch_size", "tensor_parallel_size", "num_hidden_layers", "max_model_len",
                 "max_num_batched_tokens"):
        value = getattr(options, name)
        if value is not None and value < 1:
            raise refusal(f"{name} must be at least 1, not {value}")
    if options.engine == "vllm" and options.model in BUILT_IN:
        raise refusal("--engine vllm needs a --model with weights; the built-in ones are made by transformers")
    check_limits(options, options.max_model_len, options.max_num_batched_tokens)
    check_model_limit(options, known_model_len(options))
    check_engine(options)


def check_limits(options, model_len, batched_tokens):
    """A prefill over the limit of a step would be split in several, and tell nothing of one prefill."""
    batch, prompt, output = options.batch_size, options.prompt_len, options.output_len
    if batched_tokens is not None and batch * prompt > batched_tokens:
        raise refusal(f"batch_size * prompt_len ({batch} * {prompt} = {batch * prompt}) is more than "
                      f"max_num_batched_tokens ({batched_tokens}): the prefill would be split; lower one of them or "
                      "raise --max-num-batched-tokens")
    if model_len is not None and prompt + output > model_len:
        remedy = "lower one of them" + (" or raise --max-model-len" if options.max_model_len else "")
        raise refusal(f"prompt_len + output_len ({prompt} + {output} = {prompt + output}) is more than max_model_len "
                      f"({model_len}): {remedy}")


def check_model_limit(options, own):
    """`own`: how long sequences the model itself can take, if that is known."""
    if own is None:
        return
    if options.max_model_len is not None and options.max_model_len > own:
        raise refusal(f"max_model_len ({options.max_model_len}) is more than the model's own ({own})")
    check_limits(options, options.max_model_len or own, None)


def known_model_len(options):
    """Of built-in models and of folders; other models tell it when they are loaded."""
    if options.model in BUILT_IN:
        return BUILT_IN[options.model]["max_position_embeddings"]
    try:
        with open(os.path.join(options.model, "config.json"), encoding="utf-8") as file:
            config = json.load(file)
        return config.get("max_position_embeddings") or config.get("text_config", {}).get("max_position_embeddings")
    except (OSError, ValueError, AttributeError):
        return None


def check_engine(options):
    if options.tensor_parallel_size > 1:
        gpus = gpu_count()
        if options.tensor_parallel_size > gpus:
            raise refusal(f"tensor_parallel_size ({options.tensor_parallel_size}) is more than the GPUs here ({gpus})")
        if options.engine == "transformers":
            raise refusal(f"tensor_parallel_size ({options.tensor_parallel_size}) over 1 needs --engine vllm: with "
                          "transformers the model runs in one process")
    if options.allow_cuda_graphs and options.device == "cpu":
        raise refusal("--allow-cuda-graphs needs --device cuda")
    if options.engine == "vllm" and options.device == "cpu":
        raise refusal("--engine vllm needs --device cuda")
    if options.quantization and options.model in BUILT_IN:
        raise refusal(f"--quantization needs a --model with weights, and {options.model} has random ones")


def gpu_count():
    """Those that the driver shows to this process; 0 without a driver."""
    count = ctypes.c_int(0)
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return 0
    if driver.cuInit(0) != 0 or driver.cuDeviceGetCount(ctypes.byref(count)) != 0:
        return 0
    return count.value


def check_packages(options):
    needed = ["torch", options.engine]
    if options.engine == "transformers" and options.quantization in BITS:
        needed += ["bitsandbytes", "accelerate"]
    missing = [name for name in needed if importlib.util.find_spec(name) is None]
    if missing:
        raise Failure(f"{sys.executable} has no {' and no '.join(missing)}: install it there "
                      f"(pip install {' '.join(missing)}), or run this script with a Python that has it")
