// What figures of every kind are made with: places, the colours of axes, steps of axes, texts cut to their room.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "report/plot/figure.h"

namespace lamina {

struct Rect {
  double x, y, width, height;
};

inline constexpr Colour kSoft = {0x59, 0x59, 0x59};
inline constexpr Colour kGrid = {0xe4, 0xe4, 0xe4};
inline constexpr Colour kInk = {0x22, 0x22, 0x22};
inline constexpr Colour kWhite = {0xff, 0xff, 0xff};

// How far below its middle the baseline of a text is.
constexpr double centred(double size) { return size * 0.36; }

// The least of 1, 2, 5, 10, … times a power of ten that is not less.
double round_up(double step);

// How many decimals tell multiples of the step apart.
int decimals_of(double step);

// Three significant digits, without an exponent.
std::string format_value(double value);

// Shortened in the middle (names/shorten.h) to what has room.
std::string fit_text(const std::string& text, double size, bool bold, double room, const TextWidth& text_width);

// All of them together, so that those that differ still do; none longer than `most` characters.
std::vector<std::string> fit_names(std::span<const std::string> names, size_t most, double size, double room, const TextWidth& text_width);

// A figure's title, and a line below it where there is one. Their left edge and top are at the margin.
void add_titles(Figure& figure, const std::string& title, const std::string& subtitle, double margin, const TextWidth& text_width);

// How high these are, with what is left free below them.
double titles_height(const std::string& subtitle);

}  // namespace lamina
