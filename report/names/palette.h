// Colours that people with any colour vision can tell apart, the same for the same name in every figure.
#pragma once

#include <cstdint>
#include <string_view>

namespace lamina {

struct Colour {
  uint8_t red, green, blue;
};

Colour colour_of(std::string_view name);

}  // namespace lamina
