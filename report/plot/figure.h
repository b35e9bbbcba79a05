// A figure as a list of lines, boxes and texts with their places: what layout makes and the canvas draws.
// Lengths are points (1/72 inch), from the top left corner.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "report/names/palette.h"

namespace lamina {

enum class Anchor { kStart, kMiddle, kEnd };

struct FigureText {
  std::string text;  // valid UTF-8 on one line
  double x = 0;      // of the anchor
  double y = 0;      // of the baseline there
  double size = 10;
  Anchor anchor = Anchor::kStart;
  bool bold = false;
  double angle = 0;  // degrees, counterclockwise about the anchor
  Colour colour = {0x22, 0x22, 0x22};
};

struct FigureBox {
  double x = 0;
  double y = 0;
  double width = 0;
  double height = 0;
  Look look;
};

struct FigureLine {
  double x1 = 0;
  double y1 = 0;
  double x2 = 0;
  double y2 = 0;
  double width = 1;
  Colour colour = {0x22, 0x22, 0x22};
};

// Lines are drawn first, then boxes, then texts; each over those before it.
struct Figure {
  double width = 0;
  double height = 0;
  std::string title;  // for the file's metadata
  std::vector<FigureLine> lines;
  std::vector<FigureBox> boxes;
  std::vector<FigureText> texts;
};

// How wide a text is when drawn.
using TextWidth = std::function<double(std::string_view text, double size, bool bold)>;

}  // namespace lamina
