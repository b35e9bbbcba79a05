#include "report/commands/figure_text.h"

#include "report/output.h"
#include "report/plot/canvas.h"

namespace lamina {

TextWidth figure_text_width() {
  TextWidth text_width = canvas_text_width();
  if (!has_fonts()) print_message("no fonts are installed here, so texts are drawn in strokes: install fonts-liberation or fonts-dejavu-core");
  return text_width;
}

}  // namespace lamina
