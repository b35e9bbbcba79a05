"""Every way into the driver that Python programs use, each in a module of its own.

launchers_program.py [--graph] [--steps N]

nano_ops, stripped_ops, capi_ops, Triton, CuPy, ctypes, cffi, TVM FFI and raw_ops launch one kernel each (raw_ops: three) in a step, on
the stream that PyTorch has made current. What is not installed or not built is left out, with a line on standard error.

--graph: the steps are replays of one CUDA graph.
Prints what each launcher did to its numbers, the same in both modes.
"""
import argparse
import ctypes
import importlib
import os
import sys

import torch
from torch import nn

COUNT = 4096


def parse_arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("--graph", action="store_true")
    parser.add_argument("--steps", type=int, default=4)
    return parser.parse_args()


def current_stream():
    return torch.cuda.current_stream().cuda_stream


def library_path(name):
    found = [path for path in (os.path.join(folder, name) for folder in sys.path) if os.path.exists(path)]
    if not found:
        raise ImportError(f"{name} is in no folder of sys.path")
    return found[0]


class NanoOps(nn.Module):
    """An extension made with nanobind; the tensor goes there through DLPack."""

    factor = 2

    def __init__(self):
        super().__init__()
        self.ops = importlib.import_module("nano_ops")

    def forward(self, values):
        self.ops.scale(values, float(self.factor), current_stream())


class StrippedOps(nn.Module):
    """An extension without symbols, that has a CUDA runtime of its own."""

    factor = 3

    def __init__(self):
        super().__init__()
        self.ops = importlib.import_module("stripped_ops")

    def forward(self, values):
        self.ops.scale(values, float(self.factor))


class TritonKernel(nn.Module):
    """A kernel compiled at run time, that Triton's own launcher launches."""

    factor = 5

    def __init__(self):
        super().__init__()
        self.kernel = importlib.import_module("launchers_triton").triton_scale_kernel

    def forward(self, values):
        block = 1024
        self.kernel[(values.numel() // block,)](values, float(self.factor), BLOCK=block)


class CupyKernel(nn.Module):
    """A kernel compiled at run time, that CuPy launches through the driver API. Needs CuPy 14.2 for PyTorch's stream."""

    factor = 7
    source = """
    extern "C" __global__ void cupy_scale_kernel(float* data, int count, float factor) {
      const int i = blockIdx.x * blockDim.x + threadIdx.x;
      if (i < count) data[i] *= factor;
    }"""

    def __init__(self):
        super().__init__()
        self.cupy = importlib.import_module("cupy")
        self.kernel = self.cupy.RawKernel(self.source, "cupy_scale_kernel")

    def forward(self, values):
        threads, count = 256, values.numel()
        with self.cupy.cuda.Stream.from_external(torch.cuda.current_stream()):
            arguments = (self.cupy.asarray(values), self.cupy.int32(count), self.cupy.float32(self.factor))
            self.kernel((count // threads,), (threads,), arguments)


class CtypesLibrary(nn.Module):
    """A C library, called through ctypes."""

    factor = 11

    def __init__(self):
        super().__init__()
        self.scale = ctypes.CDLL(library_path("ctypes_ops.so")).ctypes_scale
        self.scale.argtypes = ctypes.c_void_p, ctypes.c_int, ctypes.c_float, ctypes.c_void_p

    def forward(self, values):
        error = self.scale(values.data_ptr(), values.numel(), self.factor, current_stream())
        if error:
            raise RuntimeError(f"ctypes_scale: CUDA error {error}")


class CffiLibrary(nn.Module):
    """The same library, called through cffi."""

    factor = 1

    def __init__(self):
        super().__init__()
        self.ffi = importlib.import_module("cffi").FFI()
        self.ffi.cdef("int ctypes_scale(void*, int, float, void*);")
        self.library = self.ffi.dlopen(library_path("ctypes_ops.so"))

    def forward(self, values):
        pointers = [self.ffi.cast("void*", pointer) for pointer in (values.data_ptr(), current_stream())]
        error = self.library.ctypes_scale(pointers[0], values.numel(), float(self.factor), pointers[1])
        if error:
            raise RuntimeError(f"ctypes_scale: CUDA error {error}")


class TvmFfiFunction(nn.Module):
    """A function behind TVM's FFI, compiled at run time. It comes with the stream that PyTorch has made current."""

    factor = 1
    source = """
    #include <tvm/ffi/container/tensor.h>
    #include <tvm/ffi/extra/c_env_api.h>

    __global__ void tvm_ffi_scale_kernel(float* data, int count, float factor) {
      const int i = blockIdx.x * blockDim.x + threadIdx.x;
      if (i < count) data[i] *= factor;
    }

    void tvm_ffi_scale(tvm::ffi::TensorView values, double factor) {
      constexpr int kThreads = 256;
      const int count = static_cast<int>(values.size(0));
      auto stream = static_cast<cudaStream_t>(TVMFFIEnvGetStream(values.device().device_type, values.device().device_id));
      auto* data = static_cast<float*>(values.data_ptr());
      tvm_ffi_scale_kernel<<<(count + kThreads - 1) / kThreads, kThreads, 0, stream>>>(data, count, static_cast<float>(factor));
    }"""

    def __init__(self):
        super().__init__()
        cpp = importlib.import_module("tvm_ffi.cpp")
        self.module = cpp.load_inline(name="tvm_ffi_ops", cuda_sources=self.source, functions=["tvm_ffi_scale"])

    def forward(self, values):
        self.module.tvm_ffi_scale(values, float(self.factor))


class CapiOps(nn.Module):
    """An extension in plain C on the driver API, in the context that PyTorch has made current. It fills what it is given."""

    def __init__(self):
        super().__init__()
        self.ops = importlib.import_module("capi_ops")
        self.register_buffer("filled", torch.zeros(COUNT, device="cuda"))

    def forward(self, _):
        self.ops.fill(self.filled.data_ptr(), COUNT, 13.0, current_stream())

    def result(self):
        return self.filled.sum().item() / COUNT


class RawOps(nn.Module):
    """The extension of extensions_program.py: one token of one sequence, at position 0."""

    heads, head_size, block_size, packed = 2, 64, 16, 4

    def __init__(self):
        super().__init__()
        self.ops = importlib.import_module("raw_ops")
        rows, row = (1, self.heads, self.head_size), self.heads * self.head_size
        angle = torch.full((1, self.head_size // 2), 0.5, device="cuda")
        self.cos_sin = torch.cat((angle.cos(), angle.sin()), dim=-1)
        self.query, self.key, self.value = (torch.linspace(0, end, row, device="cuda").view(1, row) for end in (1, 2, 3))
        self.out = torch.zeros(rows, device="cuda")
        self.key_cache = torch.zeros(1, self.heads, self.head_size // self.packed, self.block_size, self.packed, device="cuda")
        self.value_cache = torch.zeros(1, self.heads, self.head_size, self.block_size, device="cuda")
        self.positions = torch.zeros(1, dtype=torch.int64, device="cuda")  # and the slot of the token too
        self.block_tables = torch.zeros(1, 1, dtype=torch.int32, device="cuda")
        self.seq_lens = torch.ones(1, dtype=torch.int32, device="cuda")

    def forward(self, _):
        rows = (1, self.heads, self.head_size)
        self.ops.rotary_embedding(self.positions, self.query, self.key, self.head_size, self.cos_sin, True)
        self.ops.reshape_and_cache(self.key.view(rows), self.value.view(rows), self.key_cache, self.value_cache,
                                   self.positions, "auto", 1.0)
        self.ops.paged_attention_v1(self.out, self.query.view(rows), self.key_cache, self.value_cache, self.heads, 0.125,
                                    self.block_tables, self.seq_lens, self.block_size, self.block_size)

    def result(self):
        """Attention over a single key gives its value: 1.5 on average."""
        return self.out.mean().item()


KINDS = (NanoOps, StrippedOps, TritonKernel, CupyKernel, CtypesLibrary, CffiLibrary, TvmFfiFunction, CapiOps, RawOps)


class Launchers(nn.Module):
    def __init__(self):
        super().__init__()
        self.launchers = nn.ModuleList()
        for kind in KINDS:
            try:
                self.launchers.append(kind())
            except ImportError as error:
                print(f"skipped {kind.__name__}: {error}", file=sys.stderr)

    def forward(self, values):
        values.fill_(1.0)
        for launcher in self.launchers:
            launcher(values)


def warm_up(model, values):
    """What is compiled or loaded at the first call can not be while a stream is captured."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        model(values)
    torch.cuda.current_stream().wait_stream(stream)


def capture(model, values):
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        model(values)
    return graph


def run(step, steps):
    for _ in range(steps):
        torch.cuda.nvtx.range_push("phase:decode")
        step()
        torch.cuda.synchronize()
        torch.cuda.nvtx.range_pop()


def report(model, values):
    """The product of the factors tells which of the launchers ran."""
    for launcher in model.launchers:
        name = type(launcher).__name__
        if hasattr(launcher, "factor"):
            print(f"tokens[{name}]: {(values % launcher.factor == 0).all().item()}")
        else:
            print(f"tokens[{name}]: {launcher.result():.6f}")
    print(f"checksum {values.double().mean().item():.6f}")


def main():
    options = parse_arguments()
    with torch.inference_mode():
        model, values = Launchers(), torch.empty(COUNT, device="cuda")
        warm_up(model, values)
        graph = capture(model, values) if options.graph else None
        run(graph.replay if graph else lambda: model(values), options.steps)
        report(model, values)


main()
