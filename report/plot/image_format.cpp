#include <algorithm>
#include <cctype>

#include "report/errors.h"
#include "report/format.h"
#include "report/plot/canvas.h"

namespace lamina {

ImageFormat image_format(std::string_view file_name) {
  constexpr struct {
    std::string_view ending;
    ImageFormat format;
  } kEndings[] = {{".pdf", ImageFormat::kPdf},
                  {".svg", ImageFormat::kSvg},
                  {".png", ImageFormat::kPng},
                  {".jpg", ImageFormat::kJpeg},
                  {".jpeg", ImageFormat::kJpeg}};
  std::string lower(file_name);
  std::ranges::transform(lower, lower.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  for (const auto& known : kEndings) {
    if (lower.ends_with(known.ending)) return known.format;
  }
  throw UsageError(fmt::format("{}: a figure is .pdf, .svg, .png, .jpg or .jpeg", file_name));
}

}  // namespace lamina
