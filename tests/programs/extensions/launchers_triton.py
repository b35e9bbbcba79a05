"""The Triton kernel of launchers_program.py, in a file of its own: where Triton is missing this alone can not be imported."""
import triton
import triton.language as tl


@triton.jit
def triton_scale_kernel(data, factor, BLOCK: tl.constexpr):
    at = data + tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(at, tl.load(at) * factor)
