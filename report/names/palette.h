// Colours that people with any colour vision can tell apart, the same for the same name in every figure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lamina {

struct Colour {
  uint8_t red, green, blue;
  bool operator==(const Colour&) const = default;
};

// What tells apart the names of one figure that share a colour.
enum class Texture : uint8_t { kPlain, kRising, kFalling, kDots };

struct Look {
  Colour colour;
  Texture texture = Texture::kPlain;
  bool operator==(const Look&) const = default;
};

// What a figure sums up as `others` has a colour of its own, and so has no layer or kernel.
inline constexpr std::string_view kOthers = "others";

// Depends on the name alone. There are more names than colours: a figure takes looks_of.
Colour colour_of(std::string_view name);

std::span<const Colour> all_colours();  // that colour_of may give, without that of `others`

// One figure may hold so many names that all of them look different.
constexpr size_t kMaxLooks = 48;

// How the names of one figure look: no two alike (up to kMaxLooks, `others` not counted), each in its own colour unless
// more than four of the figure share that. Of those that do, the first is plain.
std::vector<Look> looks_of(std::span<const std::string> names);

}  // namespace lamina
