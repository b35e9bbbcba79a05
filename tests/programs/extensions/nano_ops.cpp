// nano_ops: an extension made with nanobind, whose calls look otherwise on the stack than those of pybind11, and which
// knows nothing of PyTorch: a tensor comes in through DLPack.
#include "nano_ops.h"

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstdint>
#include <stdexcept>

namespace nb = nanobind;

namespace {

using Array = nb::ndarray<float, nb::device::cuda, nb::c_contig>;

// Changes x in place. The stream is given as a number, for DLPack does not tell the current one.
void scale(Array x, float factor, uintptr_t stream) {
  if (const char* error = nano_scale(x.data(), x.size(), factor, reinterpret_cast<void*>(stream))) {
    throw std::runtime_error(error);
  }
}

}  // namespace

NB_MODULE(nano_ops, module) {
  // noconvert: a converted copy would be changed in place of the caller's tensor.
  module.def("scale", &scale, nb::arg("x").noconvert(), nb::arg("factor"), nb::arg("stream") = 0);
}
