"""Launches kernels through ctypes from nested functions, on the simulated device: launching_program.py [MODE [PROBE]]

MODE: threads, made (code that is freed and made anew), exit (an exit handler), deep, throw, odd (the name of a file is no plain
string), end (threads that are in C when Python ends), caught (and are just about to read their state; PROBE is preloaded). Prints
nothing. The call tree is the functions' own.
"""
import atexit
import ctypes
import os
import sys
import threading
import time

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import sim_cuda  # noqa: E402

cuda, function = sim_cuda.start()  # calls there go without the GIL
cuda_with_gil = ctypes.PyDLL("libcuda.so.1")


def launch(library=cuda):
    library.cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, None, None, None)


class Layer:
    def attention(self):
        launch()

    def mlp(self):
        launch(cuda_with_gil)

    def __call__(self):
        self.attention()
        self.mlp()


def forward(layers):
    for layer in layers:
        layer()


def tokens(layers):
    """A generator, and functions that C calls."""
    for _ in range(2):
        yield from map(lambda _: forward(layers), [None])


def run(times=1):
    layers = [Layer() for _ in range(4)]
    for _ in range(times):
        list(tokens(layers))


def made():
    """Functions whose code is freed and made anew in the same place."""
    for i in range(1000):
        line, name = i % 10, f"made_{i // 10 % 10}"
        exec(compile("\n" * line + f"def {name}():\n  launch()\n{name}()", f"file_{i // 100}.py", "exec"), {"launch": launch})


def deep(depth):
    if depth:
        deep(depth - 1)
    else:
        launch()


def inner():
    try:
        yield
    except ValueError:
        launch()


def middle():
    yield from inner()


def outer():
    yield from middle()


def throw():
    """Into a generator, which hands it on to others."""
    generator = outer()
    next(generator)
    try:
        generator.throw(ValueError())
    except StopIteration:
        pass


def odd():
    name = type("Name", (str,), {})("odd.py")
    exec(compile("def odd_name():\n  launch()\nodd_name()", name, "exec"), {"launch": launch})


def end():
    probe = ctypes.CDLL(sys.argv[2], mode=ctypes.RTLD_GLOBAL)
    ctypes.CDLL("libcuda.so.1", mode=ctypes.RTLD_GLOBAL)
    for _ in range(2):  # in C until the process ends: who wants the GIL back meanwhile is at the mercy of Python itself
        threading.Thread(target=probe.launch_for, args=(function, 60000), daemon=True).start()
    time.sleep(0.1)
    while "caught" in sys.argv and probe.caught() < 2:
        time.sleep(0.001)


if "threads" in sys.argv:
    threads = [threading.Thread(target=run, args=(20,)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
elif "made" in sys.argv:
    made()
elif "deep" in sys.argv:
    deep(120)
elif "throw" in sys.argv:
    throw()
elif "odd" in sys.argv:
    odd()
elif "end" in sys.argv or "caught" in sys.argv:
    end()
elif "exit" in sys.argv:
    atexit.register(run)
else:
    run()
