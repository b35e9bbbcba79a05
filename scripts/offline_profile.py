#!/usr/bin/env python3
"""Profiles one prefill and the decode steps after it of a language model, layer by layer.

    scripts/offline_profile.py                                      # Mistral-7B's shape with random weights
    scripts/offline_profile.py --model mistralai/Mistral-7B-v0.3 --batch-size 4 --json mistral --csv mistral
    scripts/offline_profile.py --allow-cuda-graphs --output-len 16  # decode steps replayed from a CUDA graph

Runs itself under `lamina run` with random prompts of exactly --prompt-len tokens, then prints the prefill and the first
decode step as tables: call by call (model) and with equal layers merged (summary). Exit status: 0 fine, 1 something is
missing or nothing was recorded, 2 refused, else that of the model's process.
"""
import sys

from offline_profile import limits, recording, reports
from offline_profile.arguments import parse_arguments
from offline_profile.failure import Failure, say


def main():
    options = parse_arguments(__doc__)
    try:
        return run_worker(options) if options.worker else run_profile(options)
    except Failure as failure:
        say(failure)
        return failure.status


def run_profile(options):
    limits.check_arguments(options)
    lamina = recording.find_lamina()
    limits.check_packages(options)
    profile = options.output or recording.default_profile(options.model)
    files = reports.output_files(options)
    reports.check_outputs(profile, files, options.force)
    print("Run profile with:")
    for key, value in recording.run_facts(options).items():
        print(f"  {key} = {value}")
    sys.stdout.flush()
    recording.record(lamina, profile, options)
    reports.print_tables(lamina, profile, options)
    reports.write_files(lamina, profile, files, options)
    return 0


def run_worker(options):
    """The model's process, which the other one has looked over."""
    # pylint: disable=import-outside-toplevel
    if options.engine == "vllm":
        from offline_profile import vllm_engine as engine
    else:
        from offline_profile import transformers_engine as engine
    engine.run(options)
    return 0


if __name__ == "__main__":
    sys.exit(main())
