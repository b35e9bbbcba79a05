// Draws figures with cairo into the bytes of a file. Where Lamina was built without cairo's headers, or the library is
// not installed where it runs, each of these throws std::runtime_error with what to install.
#pragma once

#include <string>
#include <string_view>

#include "report/plot/figure.h"

namespace lamina {

enum class ImageFormat { kPdf, kSvg, kPng, kJpeg };

// By the ending of the name, as in `figure.PDF`. Throws UsageError.
ImageFormat image_format(std::string_view file_name);

// Whether there is any font; without one texts are drawn in cairo's own, which is of strokes and knows ASCII only.
bool has_fonts();

// For layout_chart. The same for every format.
TextWidth canvas_text_width();

// PDF has text that can be selected, SVG outlines of it; PNG and JPEG have two pixels a point.
std::string draw(const Figure& figure, ImageFormat format);

}  // namespace lamina
