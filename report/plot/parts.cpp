#include "report/plot/parts.h"

#include <algorithm>
#include <cmath>

#include "report/format.h"
#include "report/names/shorten.h"

namespace lamina {
namespace {

constexpr double kTitleSize = 20;
constexpr double kSubtitleSize = 12.5;
constexpr size_t kFewestCharacters = 8;  // that a name can be cut to

}  // namespace

double round_up(double step) {
  double ten = std::pow(10, std::floor(std::log10(step)));
  for (double factor : {1.0, 2.0, 5.0}) {
    if (factor * ten >= step * (1 - 1e-9)) return factor * ten;
  }
  return 10 * ten;
}

int decimals_of(double step) { return step > 0 ? std::max(0, -static_cast<int>(std::floor(std::log10(step) + 1e-9))) : 0; }

std::string format_value(double value) {
  if (!(value > 0)) return "0";
  constexpr double kHalfDigit = 1.0005;  // 9.996 is 10.0, not 10.00
  int decimals = std::clamp(2 - static_cast<int>(std::floor(std::log10(value * kHalfDigit))), 0, 6);
  return fmt::format("{:.{}f}", value, decimals);
}

std::string fit_text(const std::string& text, double size, bool bold, double room, const TextWidth& text_width) {
  std::string result = text;
  for (size_t most = 240; text_width(result, size, bold) > room && most >= kFewestCharacters; most -= 4) {
    result = shorten_names(std::span(&text, 1), most)[0];
  }
  return result;
}

std::vector<std::string> fit_names(std::span<const std::string> names, size_t most, double size, double room, const TextWidth& text_width) {
  std::vector<std::string> result;
  auto fits = [&](const std::string& name) { return text_width(name, size, false) <= room; };
  do {
    result = shorten_names(names, most);
  } while (!std::ranges::all_of(result, fits) && --most >= kFewestCharacters);
  return result;
}

void add_titles(Figure& figure, const std::string& title, const std::string& subtitle, double margin, const TextWidth& text_width) {
  double room = figure.width - 2 * margin;
  double y = margin + kTitleSize * 0.75;
  figure.texts.push_back({.text = fit_text(title, kTitleSize, true, room, text_width), .x = margin, .y = y, .size = kTitleSize, .bold = true});
  if (subtitle.empty()) return;
  figure.texts.push_back({.text = fit_text(subtitle, kSubtitleSize, false, room, text_width),
                          .x = margin,
                          .y = y + kSubtitleSize * 1.7,
                          .size = kSubtitleSize,
                          .colour = kSoft});
}

double titles_height(const std::string& subtitle) { return kTitleSize + (subtitle.empty() ? 0 : kSubtitleSize * 1.6) + 16; }

}  // namespace lamina
