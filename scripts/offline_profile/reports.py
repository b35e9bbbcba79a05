"""Tables on standard output, and the files of --json and --csv."""
import os
import subprocess

from offline_profile.failure import Failure, refusal, say

TABLES = ("model", "summary")


def output_files(options):
    """{(phase, table) or "json": path}"""
    files = {}
    if options.json:
        files["json"] = options.json.removesuffix(".json") + ".json"
    if options.csv:
        base = options.csv.removesuffix(".csv")
        for phase in phases(options):
            files.update({(phase, table): f"{base}_{phase}_{table}_table.csv" for table in TABLES})
    return files


def check_outputs(profile, files, force):
    """Better now than after the run."""
    if os.path.exists(profile) and (not os.path.isdir(profile) or os.listdir(profile)):
        raise refusal(f"{profile} is there already, and a profile is one run: name a new folder with --output")
    for path in files.values():
        folder = os.path.dirname(path) or "."
        if not os.access(folder, os.W_OK):
            raise refusal(f"{path} can not be written: {folder} is no folder that takes files")
        if os.path.lexists(path) and not force:
            raise refusal(f"{path} is there already: name another file, or overwrite it with --force")


def phases(options):
    """The phases that have tables."""
    return ["prefill"] + ["decode"] * (options.output_len > 1)


def print_tables(lamina, profile, options):
    titles = {"prefill": "Prefill", "decode": "First Decode Step"}
    first = True
    for table in TABLES:
        for phase in phases(options):
            print(("" if first else "\n") + "=" * 80)
            print(f"= {titles[phase]} {table.capitalize()} Table "
                  f"(prompt_len={options.prompt_len}, batch_size={options.batch_size})")
            print("=" * 80 + "\n", flush=True)
            call(lamina, "table", profile, "--table", table, "--phase", step_name(phase))
            first = False


def step_name(phase):
    return "decode_1" if phase == "decode" else phase


def call(*command, **options):
    done = subprocess.run(command, check=False, **options)
    if done.returncode != 0:
        raise Failure(f"{' '.join(command[:3])} ended with status {done.returncode}")
    return done


def write_files(lamina, profile, files, options):
    for key, path in files.items():
        text = call(lamina, *report_command(profile, key), "--output", "-", stdout=subprocess.PIPE).stdout
        try:
            # "x": another program may have made it during the run.
            with open(path, "wb" if options.force else "xb") as file:
                file.write(text)
        except OSError as error:
            raise Failure(f"cannot write {path}: {error.strerror}; the profile is in {profile}") from error
        say(f"wrote {path}")


def report_command(profile, key):
    if key == "json":
        return "json", profile
    phase, table = key
    return "csv", profile, "--table", table, "--phase", step_name(phase)
