"""The command line."""
import argparse

# Models made here with random weights. 7B: with the sizes of Mistral-7B-v0.2, which has no sliding window.
BUILT_IN = {
    "mistral-7b": {"num_hidden_layers": 32, "hidden_size": 4096, "num_attention_heads": 32, "num_key_value_heads": 8,
                   "intermediate_size": 14336, "vocab_size": 32000, "max_position_embeddings": 32768,
                   "sliding_window": None},
    "mistral-tiny": {"num_hidden_layers": 2, "hidden_size": 64, "num_attention_heads": 4, "num_key_value_heads": 2,
                     "intermediate_size": 128, "vocab_size": 512, "max_position_embeddings": 1024,
                     "sliding_window": None},
}
DTYPES = {"auto": "auto", "half": "float16", "float16": "float16", "bfloat16": "bfloat16", "float": "float32",
          "float32": "float32", "torch.float": "float32"}
BITS = {"bitsandbytes": "load_in_4bit", "bitsandbytes-4bit": "load_in_4bit", "bitsandbytes-8bit": "load_in_8bit"}


def parse_arguments(description):
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_model_arguments(parser)
    add_run_arguments(parser)
    output = parser.add_argument_group("output")
    output.add_argument("-o", "--output", metavar="PROFILE",
                        help="profile folder, a new one (default: lamina-MODEL-DATE-PID)")
    output.add_argument("--json", metavar="FILE", help="layerwise JSON of all steps, with the context")
    output.add_argument("--csv", metavar="BASE", help="the tables as BASE_prefill_model_table.csv, "
                        "BASE_prefill_summary_table.csv and, for the first step, the same of decode")
    output.add_argument("--force", action="store_true", help="overwrite files of --json and --csv")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)  # this is the model's process
    return parser.parse_args()


def add_model_arguments(parser):
    model = parser.add_argument_group("model")
    model.add_argument("--model", default="mistral-7b", help="name or folder of a model, or with random weights "
                       f"{' or '.join(BUILT_IN)} (default: mistral-7b)")
    model.add_argument("--tokenizer", help="for vLLM and the context; the prompts are random token ids")
    model.add_argument("--model-revision", metavar="NAME", help="branch, tag or commit of the model")
    model.add_argument("--num-hidden-layers", type=int, metavar="N", help="keep only the first N layers")
    model.add_argument("-q", "--quantization", metavar="METHOD", help="the engine's; transformers: "
                       f"{', '.join(BITS)}, or the one that the checkpoint was quantized with")
    model.add_argument("--dtype", choices=DTYPES, default="auto")
    model.add_argument("--engine", choices=("transformers", "vllm"), default="transformers")
    model.add_argument("--device", choices=("cuda", "cpu"), default="cuda",
                       help="cpu: for trying the script, no kernels")
    model.add_argument("-tp", "--tensor-parallel-size", type=int, default=1, metavar="N", help="GPUs to use; vLLM only")


def add_run_arguments(parser):
    run = parser.add_argument_group("run")
    run.add_argument("--prompt-len", type=int, default=256, metavar="N", help="tokens of each prompt (default: 256)")
    run.add_argument("--output-len", type=int, default=2, metavar="N",
                     help="tokens to make for each prompt, the first by the prefill (default: 2)")
    run.add_argument("--batch-size", type=int, default=1, metavar="N", help="prompts that run together (default: 1)")
    run.add_argument("--max-model-len", type=int, metavar="N", help="limit of prompt and output together")
    run.add_argument("--max-num-batched-tokens", type=int, metavar="N",
                     help="limit of the tokens of one step; the prefill must fit")
    run.add_argument("--allow-cuda-graphs", action="store_true", help="decode steps are replays of a CUDA graph")
