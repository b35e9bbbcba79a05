"""Launches kernels through ctypes from nested functions, on the simulated device: launching_program.py [threads|made|exit]

Prints nothing. The call tree is the functions' own.
"""
import atexit
import ctypes
import sys
import threading

cuda = ctypes.CDLL("libcuda.so.1")  # without the GIL
cuda_with_gil = ctypes.PyDLL("libcuda.so.1")
function = ctypes.c_void_p()


def start():
    context, module = ctypes.c_void_p(), ctypes.c_void_p()
    cuda.cuInit(0)
    cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0)
    cuda.cuCtxSetCurrent(context)
    cuda.cuModuleLoadData(ctypes.byref(module), b"")
    cuda.cuModuleGetFunction(ctypes.byref(function), module, b"_Z4gemmPf")


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
    for i in range(200):
        names = {"launch": launch}
        exec(compile("\n" * i + f"def made_{i % 2}():\n  launch()\nmade_{i % 2}()", f"made_{i % 2}.py", "exec"), names)


start()
if "threads" in sys.argv:
    threads = [threading.Thread(target=run, args=(20,)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
elif "made" in sys.argv:
    made()
elif "exit" in sys.argv:
    atexit.register(run)
else:
    run()
