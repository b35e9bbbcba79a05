/* Functions of the plain C API, of each kind that there is. The stable ABI: one build for every Python from 3.10 on.
 * NAME: the module's name; CUDA: whether it is to be taken for a library with device code. */
#define Py_LIMITED_API 0x030A0000
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <time.h>

#define TEXT(name) #name
#define STRING(name) TEXT(name)
#define JOIN(a, b) a##b
#define INIT(name) JOIN(PyInit_, name)

#ifdef CUDA
__attribute__((section(".nv_fatbin"), used)) static const char fatbin[] = "no device code";
#endif

/* Gives what it was given: [positional..., (name, value)...]. */
static PyObject* list_of(PyObject* const* arguments, Py_ssize_t count) {
  PyObject* list = PyList_New(0);
  for (Py_ssize_t i = 0; list && i < count; ++i) PyList_Append(list, arguments[i]);
  return list;
}

static PyObject* nothing(PyObject* self, PyObject* unused) {
  (void)self, (void)unused;
  return PyList_New(0);
}
static PyObject* one(PyObject* self, PyObject* value) {
  (void)self;
  return list_of(&value, 1);
}
static PyObject* tuple(PyObject* self, PyObject* arguments) {
  (void)self;
  return PySequence_List(arguments);
}
static PyObject* tuple_named(PyObject* self, PyObject* arguments, PyObject* named) {
  (void)self;
  PyObject* list = PySequence_List(arguments);
  PyObject* items = list && named ? PyDict_Items(named) : NULL;
  for (Py_ssize_t i = 0; items && i < PyList_Size(items); ++i) PyList_Append(list, PyList_GetItem(items, i));
  Py_XDECREF(items);
  return list;
}
static PyObject* fast(PyObject* self, PyObject* const* arguments, Py_ssize_t count) {
  (void)self;
  return list_of(arguments, count);
}
static PyObject* fast_named(PyObject* self, PyObject* const* arguments, Py_ssize_t count, PyObject* names) {
  (void)self;
  PyObject* list = list_of(arguments, count);
  for (Py_ssize_t i = 0; list && names && i < PyTuple_Size(names); ++i) {
    PyObject* pair = PyTuple_Pack(2, PyTuple_GetItem(names, i), arguments[count + i]);
    PyList_Append(list, pair);
    Py_XDECREF(pair);
  }
  return list;
}

/* fail(type, text) */
static PyObject* fail(PyObject* self, PyObject* const* arguments, Py_ssize_t count) {
  (void)self;
  if (count == 2) PyErr_SetObject(arguments[0], arguments[1]);
  return NULL;
}
/* wrong(): breaks the rules of the interpreter */
static PyObject* wrong(PyObject* self, PyObject* unused) {
  (void)self, (void)unused;
  return NULL;
}
/* call(function, ...) */
static PyObject* call(PyObject* self, PyObject* arguments) {
  (void)self;
  PyObject* rest = PyTuple_GetSlice(arguments, 1, PyTuple_Size(arguments));
  PyObject* result = rest ? PyObject_CallObject(PyTuple_GetItem(arguments, 0), rest) : NULL;
  Py_XDECREF(rest);
  return result;
}
/* wait(milliseconds), without the GIL */
static PyObject* wait(PyObject* self, PyObject* milliseconds) {
  (void)self;
  struct timespec time = {0, PyLong_AsLong(milliseconds) * 1000000};
  Py_BEGIN_ALLOW_THREADS
  nanosleep(&time, NULL);
  Py_END_ALLOW_THREADS
  Py_RETURN_NONE;
}

static PyMethodDef g_made = {"made", one, METH_O, "A function that lives no longer than who holds it."};
static PyObject* make(PyObject* self, PyObject* unused) {
  (void)unused;
  PyObject* name = PyObject_GetAttrString(self, "__name__");
  PyObject* function = PyCFunction_NewEx(&g_made, self, name);
  Py_XDECREF(name);
  return function;
}

#define METHOD(name, flags, doc) {#name, (PyCFunction)(void (*)(void))name, flags, doc}
static PyMethodDef methods[] = {
    METHOD(nothing, METH_NOARGS, "nothing()\n--\n\nTakes nothing."),
    METHOD(one, METH_O, "one(value, /)\n--\n\nTakes one value."),
    METHOD(tuple, METH_VARARGS, NULL),
    METHOD(tuple_named, METH_VARARGS | METH_KEYWORDS, "tuple_named($module, *values, **named)\n--\n\nTakes all."),
    METHOD(fast, METH_FASTCALL, "Without a signature."),
    METHOD(fast_named, METH_FASTCALL | METH_KEYWORDS, NULL),
    METHOD(fail, METH_FASTCALL, NULL),
    METHOD(wrong, METH_NOARGS, NULL),
    METHOD(call, METH_VARARGS, NULL),
    METHOD(wait, METH_O, NULL),
    METHOD(make, METH_NOARGS, NULL),
    {NULL, NULL, 0, NULL},
};

/* In memory that can not be written. */
static const PyMethodDef kFixed = {"fixed", one, METH_O, NULL};

static int add_others(PyObject* module) {
  PyObject* name = PyObject_GetAttrString(module, "__name__");
  PyObject* fixed = PyCFunction_NewEx((PyMethodDef*)&kFixed, module, name);
  Py_XDECREF(name);
  int status = fixed ? PyObject_SetAttrString(module, "fixed", fixed) : -1;
  Py_XDECREF(fixed);
  /* What is imported from elsewhere is not the module's own. */
  PyObject* math = PyImport_ImportModule("math");
  PyObject* foreign = math ? PyObject_GetAttrString(math, "sqrt") : NULL;
  if (!foreign || PyObject_SetAttrString(module, "sqrt", foreign) != 0) status = -1;
  Py_XDECREF(foreign);
  Py_XDECREF(math);
  return status;
}

static PyModuleDef_Slot slots[] = {{Py_mod_exec, add_others}, {0, NULL}};
static PyModuleDef definition = {PyModuleDef_HEAD_INIT, STRING(NAME), NULL, 0, methods, slots, NULL, NULL, NULL};

PyMODINIT_FUNC INIT(NAME)(void) { return PyModuleDef_Init(&definition); }
