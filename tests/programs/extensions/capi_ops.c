// capi_ops: an extension in plain C, without any binding library, that launches through the driver API. Its kernel is
// text, which the driver compiles and loads at the first call: no runtime library ever registers it.
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <cuda.h>

// void capi_fill_kernel(float* data, unsigned count, float value). Written by hand, for any chip and driver of today.
static const char kFillPtx[] =
    ".version 8.0\n"
    ".target sm_75\n"
    ".address_size 64\n"
    ".visible .entry capi_fill_kernel(.param .u64 data, .param .u32 count, .param .f32 value) {\n"
    "  .reg .pred %p;\n"
    "  .reg .b32 %block, %threads, %thread, %i, %n;\n"
    "  .reg .b64 %at, %offset;\n"
    "  .reg .f32 %v;\n"
    "  mov.u32 %block, %ctaid.x;\n"
    "  mov.u32 %threads, %ntid.x;\n"
    "  mov.u32 %thread, %tid.x;\n"
    "  mad.lo.u32 %i, %block, %threads, %thread;\n"
    "  ld.param.u32 %n, [count];\n"
    "  setp.ge.u32 %p, %i, %n;\n"
    "  @%p ret;\n"
    "  ld.param.u64 %at, [data];\n"
    "  ld.param.f32 %v, [value];\n"
    "  cvta.to.global.u64 %at, %at;\n"
    "  mul.wide.u32 %offset, %i, 4;\n"
    "  add.u64 %at, %at, %offset;\n"
    "  st.global.f32 [%at], %v;\n"
    "  ret;\n"
    "}\n";

// Of the context that the first call found current: PyTorch's, the primary one of its device.
static CUfunction g_fill;

// Whether the call worked. If not, a Python exception is set.
static int succeeded(CUresult result, const char* call) {
  const char* text = NULL;
  if (result == CUDA_SUCCESS) return 1;
  if (cuGetErrorString(result, &text) != CUDA_SUCCESS) text = "unknown error";
  PyErr_Format(PyExc_RuntimeError, "%s: %s", call, text);
  return 0;
}

static int load_fill(void) {
  CUmodule module;
  return g_fill || (succeeded(cuModuleLoadData(&module, kFillPtx), "cuModuleLoadData") &&
                    succeeded(cuModuleGetFunction(&g_fill, module, "capi_fill_kernel"), "cuModuleGetFunction"));
}

// No static: a profiler that reads symbols shall find the launcher by its name.
int capi_launch_fill(CUdeviceptr data, unsigned count, float value, CUstream stream) {
  const unsigned threads = 256, blocks = (count + threads - 1) / threads;
  void* arguments[] = {&data, &count, &value};
  return load_fill() &&
         succeeded(cuLaunchKernel(g_fill, blocks, 1, 1, threads, 1, 1, 0, stream, arguments, NULL), "cuLaunchKernel");
}

static PyObject* fill(PyObject* module, PyObject* arguments) {
  unsigned long long data, stream = 0;
  unsigned count;
  float value;
  (void)module;
  if (!PyArg_ParseTuple(arguments, "KIf|K", &data, &count, &value, &stream)) return NULL;
  if (!capi_launch_fill((CUdeviceptr)data, count, value, (CUstream)stream)) return NULL;
  Py_RETURN_NONE;
}

static PyMethodDef g_methods[] = {
    {"fill", fill, METH_VARARGS, "fill(pointer, n, value, stream=0): n floats on the GPU become value"},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef g_module = {
    PyModuleDef_HEAD_INIT, "capi_ops", NULL, 0, g_methods, NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit_capi_ops(void) { return PyModule_Create(&g_module); }
