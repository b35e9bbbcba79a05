#include "report/names/palette.h"

#include <cstddef>
#include <iterator>

namespace lamina {
namespace {

// Okabe and Ito, "Color Universal Design", 2008; without black.
constexpr Colour kColours[] = {{0xe6, 0x9f, 0x00}, {0x56, 0xb4, 0xe9}, {0x00, 0x9e, 0x73}, {0xf0, 0xe4, 0x42},
                               {0x00, 0x72, 0xb2}, {0xd5, 0x5e, 0x00}, {0xcc, 0x79, 0xa7}};

}  // namespace

Colour colour_of(std::string_view name) {
  uint32_t hash = 2166136261u;  // FNV-1a: the same on every machine
  for (char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 16777619u;
  return kColours[hash % std::size(kColours)];
}

}  // namespace lamina
