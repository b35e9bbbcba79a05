// The same module by pybind11 and by nanobind, taken for one with device code. NAME: its name; NANOBIND: which of them.
#include <chrono>
#include <stdexcept>
#include <string>
#include <thread>

#ifdef NANOBIND
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
namespace py = nanobind;
#define BOUND_MODULE NB_MODULE
#define READ_ONLY def_prop_ro
#else
#include <pybind11/pybind11.h>
namespace py = pybind11;
#define BOUND_MODULE PYBIND11_MODULE
#define READ_ONLY def_property_readonly
// That of nanobind is linked to a library of CUDA's name instead.
__attribute__((section(".nv_fatbin"), used)) static const char kFatbin[] = "no device code";
#endif

namespace {

struct Engine {
  explicit Engine(int number) : size(number) {}
  int size;
};

int fail(const std::string& kind) {
  if (kind == "index") throw std::out_of_range("of the extension");
  if (kind == "value") throw py::value_error("of the extension");
  throw std::runtime_error("of the extension");
}

void wait(int milliseconds) {
  py::gil_scoped_release release;
  std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
}

}  // namespace

BOUND_MODULE(NAME, m) {
  m.doc() = "A module of tests.";
  m.def("take", [](py::args all, py::kwargs named) { return all.size() + named.size(); }, "Counts what it is given.");
  m.def("one", [](py::object value) { return value; });
  m.def("add", [](int a, int b) { return a + b; });
  m.def("scale", [](py::object, double factor, const std::string& mode) { return mode + std::to_string(factor); },
        py::arg("x"), py::arg("factor") = 2.0, py::arg("mode") = "auto", "Has defaults.");
  m.def("pick", [](int) { return "int"; }, "Of an int.");
  m.def("pick", [](const std::string&) { return "str"; }, "Of a str.");
  m.def("pick_more", [](py::module_ self) { self.def("pick", [](py::list) { return "list"; }); });
  m.def("call", [](py::object function, py::args all) { return function(*all); });
  m.def("fail", fail);
  m.def("wait", wait);
  m.attr("alias") = m.attr("one");

  auto sub = m.def_submodule("sub");
  sub.def("one", [](py::object value) { return value; });

  py::class_<Engine>(m, "Engine")
      .def(py::init<int>())
      .def("run", [](Engine& engine, py::object, int times) { return engine.size * times; }, py::arg("x"), py::arg("times") = 1)
      .def("__call__", [](Engine& engine, py::object) { return engine.size; })
      .def("__repr__", [](Engine&) { return "an engine"; })
      .def_static("make", [](int number) { return Engine(number); })
      .READ_ONLY("size", [](Engine& engine) { return engine.size; });
}
