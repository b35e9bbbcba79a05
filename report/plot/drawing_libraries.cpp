#include "report/plot/drawing_libraries.h"

#include <dlfcn.h>
#include <stdexcept>

#include "report/format.h"

namespace lamina {
namespace {

class Library {
 public:
  Library(const char* file, const char* package) : file_(file), package_(package), handle_(dlopen(file, RTLD_NOW | RTLD_LOCAL)) {
    if (!handle_) fail();
  }

  template <typename Function>
  void resolve(const char* name, Function& function) const {
    function = reinterpret_cast<Function>(dlsym(handle_, name));
    if (!function) fail();
  }

 private:
  [[noreturn]] void fail() const {
    const char* problem = dlerror();
    throw std::runtime_error(fmt::format("{} cannot be used: install {} ({})", file_, package_, problem ? problem : "no such function"));
  }

  const char* file_;
  const char* package_;
  void* handle_;  // never closed: it keeps what fontconfig has read
};

Cairo load_cairo() {
  Library library("libcairo.so.2", "libcairo2");
  Cairo functions;
#define LAMINA_FUNCTION(name) library.resolve("cairo_" #name, functions.name);
  LAMINA_CAIRO_FUNCTIONS(LAMINA_FUNCTION)
#undef LAMINA_FUNCTION
  return functions;
}

TurboJpeg load_turbo_jpeg() {
  Library library("libturbojpeg.so.0", "libturbojpeg0");
  TurboJpeg functions;
#define LAMINA_FUNCTION(name) library.resolve("tj" #name, functions.name);
  LAMINA_JPEG_FUNCTIONS(LAMINA_FUNCTION)
#undef LAMINA_FUNCTION
  return functions;
}

}  // namespace

const Cairo& cairo() {
  static const Cairo functions = load_cairo();
  return functions;
}

const TurboJpeg& turbo_jpeg() {
  static const TurboJpeg functions = load_turbo_jpeg();
  return functions;
}

}  // namespace lamina
