#include "report/names/palette.h"

#include <array>
#include <iterator>

namespace lamina {
namespace {

// The first seven: Okabe and Ito, "Color Universal Design", 2008, without black. The others are as far from these, from
// each other, from white and from grey as those seven are from each other, in Oklab and in CIEDE2000, for normal vision
// and for full protanopia, deuteranopia and tritanopia (simulated as Machado, Oliveira and Fernandes do, 2009).
constexpr Colour kColours[] = {{0xe6, 0x9f, 0x00}, {0x56, 0xb4, 0xe9}, {0x00, 0x9e, 0x73}, {0xf0, 0xe4, 0x42}, {0x00, 0x72, 0xb2},
                               {0xd5, 0x5e, 0x00}, {0xcc, 0x79, 0xa7}, {0x87, 0x0f, 0x1e}, {0x87, 0x4b, 0x69}, {0xa5, 0xf0, 0xb4},
                               {0x0f, 0x3c, 0x96}, {0xb4, 0x3c, 0x2d}, {0x87, 0x78, 0xff}, {0x69, 0xe1, 0xf0}};
constexpr Colour kGrey = {0xb4, 0xb4, 0xb4};
constexpr size_t kTextures = 4;
static_assert(std::size(kColours) * kTextures >= kMaxLooks);

// Of all tried, the one with which layers of Llama, Mistral and Qwen, as PyTorch and as vLLM name them, share colours least.
constexpr uint32_t kSeed = 3425913008u;

size_t index_of(std::string_view name) {
  uint32_t hash = kSeed;  // FNV-1a: the same on every machine
  for (char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 16777619u;
  // Its low bits depend on the low bits of the characters alone.
  return (hash ^ (hash >> 15)) % std::size(kColours);
}

}  // namespace

Colour colour_of(std::string_view name) { return name == kOthers ? kGrey : kColours[index_of(name)]; }

std::span<const Colour> all_colours() { return kColours; }

std::vector<Look> looks_of(std::span<const std::string> names) {
  std::vector<Look> looks;
  std::array<size_t, std::size(kColours)> used{};  // textures, by colour
  for (const std::string& name : names) {
    size_t colour = index_of(name);
    for (size_t tries = 0; used[colour] >= kTextures && tries < std::size(kColours); ++tries) colour = (colour + 1) % std::size(kColours);
    looks.push_back(name == kOthers ? Look{kGrey} : Look{kColours[colour], static_cast<Texture>(used[colour]++ % kTextures)});
  }
  return looks;
}

}  // namespace lamina
