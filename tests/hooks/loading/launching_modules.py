"""Modules that launch kernels through ctypes, on the simulated device."""
import ctypes

import torch
from torch import nn

cuda = ctypes.CDLL("libcuda.so.1")
function = ctypes.c_void_p()


def start():
    context, module = ctypes.c_void_p(), ctypes.c_void_p()
    cuda.cuInit(0)
    cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0)
    cuda.cuCtxSetCurrent(context)
    cuda.cuModuleLoadData(ctypes.byref(module), b"")
    cuda.cuModuleGetFunction(ctypes.byref(function), module, b"_Z4gemmPf")


def launch():
    cuda.cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, None, None, None)


class Attention(nn.Module):
    def helper(self):
        launch()

    def forward(self, values):
        self.helper()
        return values


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(Attention() for _ in range(3))

    def forward(self, values):
        for layer in self.layers:
            values = layer(values)
        launch()
        return values


def main():
    model = Model()
    for _ in range(3):
        model(torch.zeros(2, 4))


start()
main()
