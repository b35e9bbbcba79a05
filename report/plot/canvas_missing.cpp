// In place of canvas.cpp where cairo or libjpeg-turbo was not there when Lamina was built.
#include <stdexcept>

#include "report/plot/canvas.h"

namespace lamina {
namespace {

[[noreturn]] void fail() {
  throw std::runtime_error("built without cairo: install libcairo2-dev and libturbojpeg0-dev (scripts/install-deps does), run cmake again and build");
}

}  // namespace

bool has_fonts() { fail(); }
TextWidth canvas_text_width() { fail(); }
std::string draw(const Figure&, ImageFormat) { fail(); }

}  // namespace lamina
