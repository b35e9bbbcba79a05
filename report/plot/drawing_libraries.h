// cairo and TurboJPEG, found when the first figure is drawn and never linked: `lamina run` starts where they are missing.
#pragma once

#include <cairo-pdf.h>
#include <cairo-svg.h>
#include <cairo.h>
#include <turbojpeg.h>

namespace lamina {

#define LAMINA_CAIRO_FUNCTIONS(X)                                                                                       \
  X(arc) X(clip) X(create) X(destroy) X(fill) X(font_options_create) X(font_options_destroy)                            \
  X(font_options_set_hint_metrics) X(font_options_set_hint_style) X(get_scaled_font) X(image_surface_create)            \
  X(image_surface_get_data) X(image_surface_get_stride) X(line_to) X(move_to) X(paint) X(pdf_surface_create_for_stream) \
  X(pdf_surface_set_metadata) X(rectangle) X(restore) X(rotate) X(save) X(scale) X(scaled_font_get_type)                \
  X(select_font_face) X(set_font_options) X(set_font_size) X(set_line_width) X(set_source_rgb) X(show_text)             \
  X(status) X(status_to_string) X(stroke) X(surface_destroy) X(surface_finish) X(surface_flush)                         \
  X(surface_write_to_png_stream) X(svg_surface_create_for_stream) X(text_extents) X(translate)

struct Cairo {
#define LAMINA_FUNCTION(name) decltype(&::cairo_##name) name = nullptr;
  LAMINA_CAIRO_FUNCTIONS(LAMINA_FUNCTION)
#undef LAMINA_FUNCTION
};

#define LAMINA_JPEG_FUNCTIONS(X) X(Compress2) X(Destroy) X(Free) X(GetErrorStr) X(InitCompress)

struct TurboJpeg {
#define LAMINA_FUNCTION(name) decltype(&::tj##name) name = nullptr;
  LAMINA_JPEG_FUNCTIONS(LAMINA_FUNCTION)
#undef LAMINA_FUNCTION
};

// Throw std::runtime_error that says what to install.
const Cairo& cairo();
const TurboJpeg& turbo_jpeg();

}  // namespace lamina
