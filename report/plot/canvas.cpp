#include "report/plot/canvas.h"

#include <cmath>
#include <memory>
#include <numbers>
#include <stdexcept>

#include "report/format.h"
#include "report/plot/drawing_libraries.h"

namespace lamina {
namespace {

// Narrower than the usual sans-serif, which fontconfig takes where it is not installed.
constexpr const char* kFont = "Liberation Sans";

constexpr double kPixels = 2;  // a point
constexpr int kJpegQuality = 92;
constexpr double kStripeDistance = 5;
constexpr double kStripeWidth = 1.3;
constexpr double kDotRadius = 1;

cairo_status_t append(void* bytes, const unsigned char* data, unsigned length) {
  static_cast<std::string*>(bytes)->append(reinterpret_cast<const char*>(data), length);
  return CAIRO_STATUS_SUCCESS;
}

// A cairo surface that becomes a file.
class Canvas {
 public:
  Canvas(ImageFormat format, double width, double height) : format_(format), surface_(make_surface(width, height)) {
    context_ = api_.create(surface_);
    if (is_raster()) api_.scale(context_, kPixels, kPixels);
    cairo_font_options_t* options = api_.font_options_create();
    api_.font_options_set_hint_metrics(options, CAIRO_HINT_METRICS_OFF);  // widths do not depend on the format
    api_.font_options_set_hint_style(options, CAIRO_HINT_STYLE_NONE);
    api_.set_font_options(context_, options);
    api_.font_options_destroy(options);
    set_colour({0xff, 0xff, 0xff});
    api_.paint(context_);
  }

  Canvas(const Canvas&) = delete;
  Canvas& operator=(const Canvas&) = delete;

  ~Canvas() {
    api_.destroy(context_);
    api_.surface_destroy(surface_);
  }

  void draw(const Figure& figure) {
    if (format_ == ImageFormat::kPdf) api_.pdf_surface_set_metadata(surface_, CAIRO_PDF_METADATA_TITLE, figure.title.c_str());
    for (const FigureLine& line : figure.lines) draw(line);
    for (const FigureBox& box : figure.boxes) draw(box);
    for (const FigureText& text : figure.texts) draw(text);
  }

  double text_width(std::string_view text, double size, bool bold) {
    set_font(size, bold);
    cairo_text_extents_t extents;
    api_.text_extents(context_, std::string(text).c_str(), &extents);
    return extents.x_advance;
  }

  // What cairo draws where it finds no font is one of its own.
  bool has_fonts() {
    set_font(10, false);
    return api_.scaled_font_get_type(api_.get_scaled_font(context_)) != CAIRO_FONT_TYPE_USER;
  }

  std::string finish() {
    check(api_.status(context_));
    if (format_ == ImageFormat::kPng) check(api_.surface_write_to_png_stream(surface_, append, &bytes_));
    if (format_ == ImageFormat::kJpeg) write_jpeg();
    api_.surface_finish(surface_);
    return std::move(bytes_);
  }

 private:
  bool is_raster() const { return format_ == ImageFormat::kPng || format_ == ImageFormat::kJpeg; }

  cairo_surface_t* make_surface(double width, double height) {
    if (format_ == ImageFormat::kPdf) return api_.pdf_surface_create_for_stream(append, &bytes_, width, height);
    if (format_ == ImageFormat::kSvg) return api_.svg_surface_create_for_stream(append, &bytes_, width, height);
    pixels_wide_ = static_cast<int>(std::ceil(width * kPixels));
    pixels_high_ = static_cast<int>(std::ceil(height * kPixels));
    return api_.image_surface_create(CAIRO_FORMAT_RGB24, pixels_wide_, pixels_high_);
  }

  void check(cairo_status_t status) const {
    if (status != CAIRO_STATUS_SUCCESS) throw std::runtime_error(fmt::format("cairo: {}", api_.status_to_string(status)));
  }

  void set_colour(Colour colour) { api_.set_source_rgb(context_, colour.red / 255.0, colour.green / 255.0, colour.blue / 255.0); }

  void set_font(double size, bool bold) {
    api_.select_font_face(context_, kFont, CAIRO_FONT_SLANT_NORMAL, bold ? CAIRO_FONT_WEIGHT_BOLD : CAIRO_FONT_WEIGHT_NORMAL);
    api_.set_font_size(context_, size);
  }

  void draw(const FigureLine& line) {
    set_colour(line.colour);
    api_.set_line_width(context_, line.width);
    api_.move_to(context_, line.x1, line.y1);
    api_.line_to(context_, line.x2, line.y2);
    api_.stroke(context_);
  }

  void draw(const FigureBox& box) {
    set_colour(box.look.colour);
    api_.rectangle(context_, box.x, box.y, box.width, box.height);
    api_.fill(context_);
    if (box.look.texture == Texture::kPlain) return;
    api_.save(context_);
    api_.rectangle(context_, box.x, box.y, box.width, box.height);
    api_.clip(context_);
    set_colour({0xff, 0xff, 0xff});
    if (box.look.texture == Texture::kDots) {
      add_dots(box);
    } else {
      add_stripes(box, box.look.texture == Texture::kRising);
    }
    api_.restore(context_);
  }

  void add_stripes(const FigureBox& box, bool rising) {
    api_.set_line_width(context_, kStripeWidth);
    double bottom = box.y + box.height;
    for (double x = box.x - box.height; x < box.x + box.width; x += kStripeDistance * std::numbers::sqrt2) {
      api_.move_to(context_, x, rising ? bottom : box.y);
      api_.line_to(context_, x + box.height, rising ? box.y : bottom);
    }
    api_.stroke(context_);
  }

  void add_dots(const FigureBox& box) {
    for (double y = box.y + kStripeDistance / 2; y < box.y + box.height; y += kStripeDistance) {
      for (double x = box.x + kStripeDistance / 2; x < box.x + box.width; x += kStripeDistance) {
        api_.move_to(context_, x + kDotRadius, y);
        api_.arc(context_, x, y, kDotRadius, 0, 2 * std::numbers::pi);
      }
    }
    api_.fill(context_);
  }

  void draw(const FigureText& text) {
    double width = text_width(text.text, text.size, text.bold);
    set_colour(text.colour);
    api_.save(context_);
    api_.translate(context_, text.x, text.y);
    api_.rotate(context_, -text.angle * std::numbers::pi / 180);
    api_.move_to(context_, text.anchor == Anchor::kStart ? 0 : text.anchor == Anchor::kMiddle ? -width / 2 : -width, 0);
    api_.show_text(context_, text.text.c_str());
    api_.restore(context_);
  }

  void write_jpeg() {
    const TurboJpeg& jpeg = turbo_jpeg();
    api_.surface_flush(surface_);
    std::unique_ptr<void, decltype(jpeg.Destroy)> compressor(jpeg.InitCompress(), jpeg.Destroy);
    unsigned char* data = nullptr;
    unsigned long size = 0;
    int failed = jpeg.Compress2(compressor.get(), api_.image_surface_get_data(surface_), pixels_wide_, api_.image_surface_get_stride(surface_),
                                pixels_high_, TJPF_BGRX, &data, &size, TJSAMP_444, kJpegQuality, 0);
    if (!failed) bytes_.assign(reinterpret_cast<const char*>(data), size);
    jpeg.Free(data);
    if (failed) throw std::runtime_error(fmt::format("libturbojpeg: {}", jpeg.GetErrorStr()));
  }

  const Cairo& api_ = cairo();
  ImageFormat format_;
  std::string bytes_;
  int pixels_wide_ = 0;
  int pixels_high_ = 0;
  cairo_surface_t* surface_;
  cairo_t* context_ = nullptr;
};

}  // namespace

bool has_fonts() { return Canvas(ImageFormat::kPng, 1, 1).has_fonts(); }

TextWidth canvas_text_width() {
  auto canvas = std::make_shared<Canvas>(ImageFormat::kPng, 1, 1);
  return [canvas](std::string_view text, double size, bool bold) { return canvas->text_width(text, size, bold); };
}

std::string draw(const Figure& figure, ImageFormat format) {
  Canvas canvas(format, figure.width, figure.height);
  canvas.draw(figure);
  return canvas.finish();
}

}  // namespace lamina
