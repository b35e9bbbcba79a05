"""The model's process, with transformers: eager steps, or decode steps from a CUDA graph. Phases are ranges of ours."""
import contextlib
import inspect

import torch
import transformers

from offline_profile.arguments import BITS, BUILT_IN, DTYPES
from offline_profile.failure import Failure, refusal
from offline_profile.limits import check_model_limit
from offline_profile.prompts import random_prompts


OLDEST_TRANSFORMERS = (4, 56)


def run(options):
    if tuple(int(part) for part in transformers.__version__.split(".")[:2]) < OLDEST_TRANSFORMERS:
        raise Failure(f"transformers {transformers.__version__} is too old: 4.56 or newer is needed")
    if torch.version.cuda is None:
        raise Failure("this PyTorch was built without CUDA, and so without the ranges that name the phases")
    if options.device == "cuda" and not torch.cuda.is_available():
        raise Failure("PyTorch finds no CUDA GPU here (--device cpu tries the script without one)")
    with torch.inference_mode():
        model = load_model(options).eval()
        prompts = random_prompts(options, model.config.get_text_config().vocab_size)
        prompts = torch.tensor(prompts, device=options.device)
        decodes = options.output_len - 1
        steps = GraphSteps(model, options) if options.allow_cuda_graphs and decodes else Steps(model)
        warm_up(steps, prompts, decodes)
        measure(steps, prompts, decodes)


# ---- the model


def load_model(options):
    if options.model in BUILT_IN:
        return random_model(options)
    try:
        config = transformers.AutoConfig.from_pretrained(options.model, revision=options.model_revision)
    except (OSError, ValueError) as error:
        raise Failure(f"{options.model}: {str(error).strip().splitlines()[0]}") from error
    text_config = config.get_text_config()
    check_model_limit(options, getattr(text_config, "max_position_embeddings", None))
    shorten(text_config, options.num_hidden_layers)
    more = quantization_arguments(options, config)
    model = transformers.AutoModelForCausalLM.from_pretrained(
        options.model, revision=options.model_revision, config=config, dtype=DTYPES[options.dtype], **more)
    return model if more else model.to(options.device)


def random_model(options):
    config = transformers.MistralConfig(**BUILT_IN[options.model])
    shorten(config, options.num_hidden_layers)
    dtype = torch.bfloat16 if options.dtype == "auto" else getattr(torch, DTYPES[options.dtype])
    with torch.device(options.device):  # there it takes milliseconds to make the weights
        return transformers.AutoModelForCausalLM.from_config(config, dtype=dtype)


def shorten(config, layers):
    if layers is None:
        return
    config.num_hidden_layers = layers
    if getattr(config, "layer_types", None):
        config.layer_types = config.layer_types[:layers]


def quantization_arguments(options, config):
    """For from_pretrained. A checkpoint that is quantized already is loaded as what it is."""
    own = getattr(config, "quantization_config", None) or {}
    own = own.get("quant_method") if isinstance(own, dict) else getattr(own, "quant_method", None)
    own = getattr(own, "value", own)
    method = options.quantization
    if method is None or method == own:
        return {}
    if own or method not in BITS:
        state = f"quantized with {own}" if own else "not quantized"
        raise refusal(f"quantization {method}: {options.model} is {state}, and "
                      f" transformers quantizes at loading with {', '.join(BITS)} only")
    bits = {BITS[method]: True}
    if "4bit" in BITS[method]:
        bits["bnb_4bit_compute_dtype"] = "bfloat16" if options.dtype == "auto" else DTYPES[options.dtype]
    return {"quantization_config": transformers.BitsAndBytesConfig(**bits), "device_map": {"": options.device}}


# ---- its steps


class Steps:
    """Greedy steps of a model with its cache."""

    def __init__(self, model):
        self.model, self.cache = model, None
        accepted = inspect.signature(model.forward).parameters
        self.cache_argument = "cache" if "cache" in accepted else "past_key_values"  # transformers 5.24 renamed it
        # As in serving, only the last position of a prompt goes through the head.
        self.more = {"logits_to_keep": 1} if "logits_to_keep" in accepted else {}

    def begin(self):
        """Forgets the sequences so far."""
        self.cache = transformers.DynamicCache(config=self.model.config)

    def step(self, tokens):
        """The next token of each sequence. The cache grows by `tokens`."""
        output = self.model(input_ids=tokens, use_cache=True, **{self.cache_argument: self.cache}, **self.more)
        return output.logits[:, -1:].argmax(dim=-1)

    prefill = step
    decode = step


class GraphSteps(Steps):
    """Decode steps are replays of one CUDA graph. It takes the token from a buffer and puts the next one there; its
    cache counts its own length on the device."""

    def __init__(self, model, options):
        super().__init__(model)
        self.graph = torch.cuda.CUDAGraph()
        self.token = torch.zeros((options.batch_size, 1), dtype=torch.int64, device=options.device)
        self.cache = transformers.StaticCache(model.config, max_cache_len=options.prompt_len + options.output_len)
        if any(type(layer) is not transformers.cache_utils.StaticLayer for layer in self.cache.layers):
            raise refusal(f"--allow-cuda-graphs: layers of {options.model} have a cache that no graph can follow "
                          "(sliding windows, recurrent states)")

    def begin(self):
        self.cache.reset()

    def prefill(self, tokens):
        return self.token.copy_(self.step(tokens))

    def decode(self, token):
        del token  # it is in the buffer
        self.graph.replay()
        return self.token

    def capture(self):
        stream = torch.cuda.Stream()  # as the capture, its warm-up is not on the default stream
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            self.step(self.token)
        torch.cuda.current_stream().wait_stream(stream)
        with torch.cuda.graph(self.graph):
            self.token.copy_(self.step(self.token))


# ---- the run


def warm_up(steps, prompts, decodes):
    """The first run of a kernel loads and chooses code. This is before the first named phase, and so is start-up."""
    steps.begin()
    token = steps.prefill(prompts)
    if isinstance(steps, GraphSteps):
        steps.capture()
        steps.begin()
        token = steps.prefill(prompts)
    if decodes:
        steps.decode(token)


def measure(steps, prompts, decodes):
    steps.begin()
    with phase("prefill", prompts):
        token = steps.prefill(prompts)
    for _ in range(decodes):
        with phase("decode", prompts):
            token = steps.decode(token)


@contextlib.contextmanager
def phase(name, tensor):
    """A step of a named phase. It ends when its kernels have run, so that steps do not overlap."""
    synchronize = torch.cuda.synchronize if tensor.is_cuda else lambda: None
    synchronize()
    torch.cuda.nvtx.range_push(f"phase:{name}")
    yield
    synchronize()
    torch.cuda.nvtx.range_pop()
