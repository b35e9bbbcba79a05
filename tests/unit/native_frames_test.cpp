// How frames of native call stacks are named, and which are left out.
#include <gtest/gtest.h>

#include "report/attribution/native_frames.h"

namespace lamina {
namespace {

CodePlace in(const char* module, const char* function) { return {module, function, {}, 0, false, 0x1f20}; }

TEST(NativeFrames, AreNamedByTheirFunction) {
  const char* cases[][2] = {
      {"main", "main"},
      {"_ZN4vllm8launcherIfEEvPT_", "vllm::launcher<float>"},
      {"_Z17reshape_and_cacheRN2at6TensorES1_", "reshape_and_cache"},
      {"_ZN12_GLOBAL__N_17forwardEi", "(anonymous namespace)::forward"},
      {"_ZN5ModelclEi", "Model::operator()"},
      {"_ZN5ModelltERKS_", "Model::operator<"},
      {"_ZZ4mainENKUlvE_clEv", "main::{lambda()#1}::operator()"},
      {"_ZN3FoocvSt4pairIidEEv", "Foo::operator std::pair<int, double>"},
  };
  for (auto [mangled, label] : cases) EXPECT_EQ(frame_label(in("/x/prog", mangled)), label) << mangled;
  EXPECT_EQ(frame_label(in("/opt/raw_ops.so", "")), "raw_ops.so+0x1f20");
  EXPECT_EQ(frame_label(in("", "")), "(code of no file)");
  EXPECT_EQ(frame_label(in("/x/_C.abi3.so", "")), "_C.so+0x1f20");
  EXPECT_EQ(library_name("/x/raw_ops.cpython-312-x86_64-linux-gnu.so"), "raw_ops.so");
  EXPECT_EQ(library_name("libcublas.so.13"), "libcublas.so.13");
}

TEST(NativeFrames, PlumbingIsLeftOut) {
  const CodePlace plumbing[] = {
      in("/usr/lib/libcuda.so.580.1", ""), in("/x/libcudart.so.13", "cudaLaunchKernel"), in("/x/raw_ops.so", "cudaLaunchKernel"),
      in("/x/raw_ops.so", "_Z30__device_stub__Z6kernelPfPf"), in("/x/raw_ops.so", "_Z6kernelPf"),
      in("/usr/bin/python3.12", "_PyEval_EvalFrameDefault"), in("/lib/libpython3.11.so.1.0", "PyObject_Call"),
      in("/x/raw_ops.so", "_ZN8pybind1112cpp_function10dispatcherEP7_objectS2_S2_"), in("/lib/libc.so.6", "__libc_start_call_main"),
      in("/x/lib/python3.12/site-packages/tvm_ffi/core.cpython-312-x86_64-linux-gnu.so", ""), in("/x/libtvm_ffi.so", "TVMFFIFunctionCall"),
      in("/x/tvm_ffi_ops.so", "__tvm_ffi_scale"), in("/x/prog", "_start"), in("/x/raw_ops.so", "_ZSt8__invokeIRPFvvEJEEvOT_DpOT0_"),
  };
  for (const CodePlace& place : plumbing) EXPECT_TRUE(is_plumbing(place, "_Z6kernelPf")) << place.module << " " << place.function;
  const CodePlace shown[] = {
      in("/x/prog", "main"), in("/x/raw_ops.so", ""), in("/x/raw_ops.so", "_Z7kernel2Pf"), in("/x/libcublas.so.13", ""),
      in("/x/python_ops.so", ""), in("/x/tvm_ffi_ops.so", "scale"), in("/x/raw_ops.so", "_Z17reshape_and_cacheRN2at6TensorE"), in("", ""),
  };
  for (const CodePlace& place : shown) EXPECT_FALSE(is_plumbing(place, "_Z6kernelPf")) << place.module << " " << place.function;
}

TEST(NativeFrames, ThoseOfLaunchersAreKnown) {
  for (const char* path : {"/x/site-packages/cupy_backends/cuda/api/driver.cpython-312-x86_64-linux-gnu.so", "/y/dist-packages/numba/cuda/driver.so"}) {
    EXPECT_TRUE(is_launcher_code(in(path, ""))) << path;
  }
  for (const char* path : {"/x/site-packages/torch/lib/libtorch_cuda.so", "/x/cupy/a.so", "/x/prog", ""}) {
    EXPECT_FALSE(is_launcher_code(in(path, ""))) << path;
  }
}

TEST(PythonFrames, AreNamedByFunctionAndFile) {
  CodePlace place{"", "Attention.forward", "/home/u/model.py", 42, true, 0};
  EXPECT_EQ(frame_label(place), "Attention.forward (model.py)");
  EXPECT_EQ(frame_label(place, WithLine::kYes), "Attention.forward (model.py:42)");
  place.file = "<string>";
  EXPECT_EQ(frame_label(place), "Attention.forward (<string>)");
  CodePlace native{"/x/prog", "main", "/home/u/main.cpp", 7, false, 0};
  EXPECT_EQ(frame_label(native, WithLine::kYes), "main (main.cpp:7)");
  native.file = {};
  EXPECT_EQ(frame_label(native, WithLine::kYes), "main");
}

TEST(PythonFrames, LaunchersAndPythonsOwnAreLeftOut) {
  for (const char* file : {"/usr/lib/python3.11/threading.py", "/x/lib/python3.12/site-packages/torch/nn/modules/module.py",
                           "/x/site-packages/triton/runtime/jit.py", "/usr/lib/python3/dist-packages/numba/cuda/compiler.py",
                           "<frozen runpy>", "/x/lib/lamina/python/lamina_engines.py"}) {
    EXPECT_TRUE(is_plumbing({"", "run", file, 1, true, 0}, "")) << file;
  }
  for (const char* file : {"/x/lib/python3.12/site-packages/vllm/model.py", "/home/u/torch/model.py", "<string>", "model.py",
                           "/tmp/ipykernel_1/2.py", "/home/lib/python3/model.py"}) {
    EXPECT_FALSE(is_plumbing({"", "run", file, 1, true, 0}, "")) << file;
  }
}

}  // namespace
}  // namespace lamina
