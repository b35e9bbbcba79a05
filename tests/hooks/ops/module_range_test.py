"""Runs module_range_test (C++) with nvtx_log.so and checks its ranges: module_range_test.py PROGRAM NVTX_LOG_LIBRARY"""
import os
import subprocess
import sys
import tempfile

from nvtx_events import tree

BLOCK = [
    ("Block @ Net.layers.{}", "Net @ Net"),
    ("Fc(weight=float32[4, 4]) @ Net.layers.{}.fc", "Block @ Net.layers.{}"),
    ("Block @ Net.layers.{}", "Block @ Net.layers.{}"),
]
NET = ([("Net @ Net", None)] + [(text.format(i), parent.format(i)) for i in range(2) for text, parent in BLOCK] +
       [("Fc(weight=float32[2, 4]) @ Net.(Fc)", "Net @ Net")])
EXPECTED = NET * 2 + [
    ("Net @ Net", None), ("Block @ Net.layers.0", "Net @ Net"),
    ("Block @ Block", None), ("Fc(weight=float32[4, 4]) @ Block.fc", "Block @ Block"), ("Block @ Block", "Block @ Block"),
    ("Fc(weight=float32[5, 4]) @ Fc", None), ("Fc(weight=float32[6, 4]) @ Fc", None)]


def main():
    program, log = (os.path.abspath(path) for path in sys.argv[1:3])
    with tempfile.NamedTemporaryFile() as file:
        os.environ["NVTX_LOG"] = file.name
        env = {**os.environ, "NVTX_INJECTION64_PATH": log}
        texts = tree(lambda: subprocess.run([program], env=env, check=True, stdout=subprocess.DEVNULL))
        registered = [line for line in open(file.name) if line.startswith("register")]
    assert texts == EXPECTED, "\n".join(map(str, texts))
    assert len(registered) == len(set(registered)), "a text is registered twice"
    env.pop("NVTX_INJECTION64_PATH")
    subprocess.run([program], env=env, check=True, stdout=subprocess.DEVNULL)
    print("ok")


if __name__ == "__main__":
    sys.exit(main())
