"""The model's process, with vLLM: one generate call, whose steps the hook finds."""
import os

# The engine in this process takes all requests before its first step: one prefill.
os.environ["VLLM_ENABLE_V1_MULTIPROCESSING"] = "0"

import vllm  # pylint: disable=wrong-import-position

from offline_profile.arguments import DTYPES  # pylint: disable=wrong-import-position
from offline_profile.failure import refusal  # pylint: disable=wrong-import-position
from offline_profile.limits import check_limits  # pylint: disable=wrong-import-position
from offline_profile.prompts import random_prompts  # pylint: disable=wrong-import-position


def run(options):
    llm = load(options)
    config = llm.llm_engine.vllm_config
    check_limits(options, config.model_config.max_model_len, config.scheduler_config.max_num_batched_tokens)
    if options.batch_size > config.scheduler_config.max_num_seqs:
        raise refusal(f"batch_size ({options.batch_size}) is more than max_num_seqs "
                      f"({config.scheduler_config.max_num_seqs}): the prefill would be split")
    prompts = [{"prompt_token_ids": ids} for ids in random_prompts(options, config.model_config.get_vocab_size())]
    sampling = vllm.SamplingParams(temperature=0, max_tokens=options.output_len, ignore_eos=True, detokenize=False)
    llm.generate(prompts, sampling, use_tqdm=False)


def load(options):
    layers = options.num_hidden_layers
    return vllm.LLM(model=options.model, tokenizer=options.tokenizer, revision=options.model_revision,
                    quantization=options.quantization, dtype=DTYPES[options.dtype], max_model_len=options.max_model_len,
                    max_num_batched_tokens=options.max_num_batched_tokens,
                    tensor_parallel_size=options.tensor_parallel_size, enforce_eager=not options.allow_cuda_graphs,
                    hf_overrides={"num_hidden_layers": layers} if layers else {}, enable_prefix_caching=False,
                    skip_tokenizer_init=not options.tokenizer)
