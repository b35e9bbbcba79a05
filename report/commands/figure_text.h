// What commands that draw figures begin with.
#pragma once

#include "report/plot/figure.h"

namespace lamina {

// How wide texts are in a figure. Tells the user where no fonts are installed; throws as canvas.h.
TextWidth figure_text_width();

}  // namespace lamina
