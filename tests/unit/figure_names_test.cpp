// What a figure does to names: shortens and colours them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <tuple>

#include "report/names/palette.h"
#include "report/names/shorten.h"
#include "report/render/text.h"

namespace lamina {
namespace {

using testing::ElementsAre;
using Names = std::vector<std::string>;

// ---- shortening

TEST(ShortenedNames, ShortOnesStay) { EXPECT_THAT(shorten_names(Names{"MLP", "12345678", ""}, 8), ElementsAre("MLP", "12345678", "")); }

TEST(ShortenedNames, AreCutInTheMiddleBetweenWords) {
  EXPECT_THAT(shorten_names(Names{"MergedColumnParallelLinear(weight=bfloat16[28672, 4096])"}, 46), ElementsAre("MergedColumnParallelLinear(…[28672, 4096])"));
}

TEST(ShortenedNames, ParentsAreCutLast) {
  EXPECT_THAT(shorten_names(Names{"nvjet_sm90(bfloat16, 256x128x64, TNT) <- Linear(weight=bfloat16[4096, 4096])"}, 61),
              ElementsAre("nvjet_sm90(bfloat16, … <- Linear(weight=bfloat16[4096, 4096])"));
}

TEST(ShortenedNames, KeepWhatTellsThemApart) {
  std::string same(40, 's');
  for (size_t limit : {8u, 20u, 40u}) {
    for (const Names& names : {Names{same + "a" + same, same + "b" + same}, Names{"a" + same, "b" + same}, Names{same + "a", same + "b"}}) {
      auto shown = shorten_names(names, limit);
      EXPECT_NE(shown[0].find('a'), std::string::npos) << shown[0];
      EXPECT_NE(shown[1].find('b'), std::string::npos) << shown[1];
    }
  }
}

TEST(ShortenedNames, DifferentOnesStayDifferentAndEqualOnesEqual) {
  Names names;
  for (int i = 0; i < 300; ++i) {
    names.push_back(std::string(100, 'x') + std::to_string(i % 200) + std::string(i % 3 ? 1000 : 50, 'y') + std::to_string(i % 150) + std::string(100, 'z'));
  }
  for (size_t limit : {8u, 12u, 40u}) {
    auto shown = shorten_names(names, limit);
    EXPECT_EQ(std::set<std::string>(shown.begin(), shown.end()).size(), std::set<std::string>(names.begin(), names.end()).size());
    for (const std::string& name : shown) EXPECT_LE(characters(name), limit);
  }
  auto twice = shorten_names(Names{names[0], names[1], names[0]}, 10);
  EXPECT_EQ(twice[0], twice[2]);
  EXPECT_NE(twice[0], twice[1]);
}

TEST(ShortenedNames, CharactersStayWhole) {
  std::string name;
  for (int i = 0; i < 50; ++i) name += "ä€";
  auto shown = shorten_names(Names{name, name + "x"}, 20);
  for (const std::string& text : shown) EXPECT_EQ(valid_utf8(text), text);
}

TEST(ShortenedNames, OneMayBeWhatAnotherIsShortenedTo) {
  auto shown = shorten_names(Names{"abcde…xyz", "abcdefghijklmnopqrstuvwxyz"}, 9);
  EXPECT_EQ(shown[0], "abcde…xyz");
  EXPECT_NE(shown[0], shown[1]);
}

// ---- colours

TEST(Colours, OneNameHasOneColourInEveryFigure) {
  Names small = {"RMSNorm(weight=bfloat16[4096])", "Attention"};
  Names large = {"a", "b", "Attention", "c", "RMSNorm(weight=bfloat16[4096])", "others"};
  EXPECT_EQ(looks_of(small)[1].colour, looks_of(large)[2].colour);
  EXPECT_EQ(looks_of(small)[0].colour, looks_of(large)[4].colour);
  for (const std::string& name : large) EXPECT_EQ(looks_of(Names{name})[0].colour, colour_of(name));
}

TEST(Colours, OthersHaveTheirOwn) {
  for (const Colour& colour : all_colours()) EXPECT_FALSE(colour == colour_of(kOthers));
  EXPECT_EQ(looks_of(Names{"others"})[0].texture, Texture::kPlain);
}

TEST(Colours, NoTwoOfAFigureLookAlike) {
  for (int seed = 0; seed < 200; ++seed) {
    Names names;
    for (size_t i = 0; i < kMaxLooks; ++i) names.push_back("kernel_" + std::to_string(seed * 1000 + static_cast<int>(i * i)));
    names.emplace_back(kOthers);
    std::set<std::tuple<int, int, int, int>> seen;
    for (const Look& look : looks_of(names)) seen.emplace(look.colour.red, look.colour.green, look.colour.blue, static_cast<int>(look.texture));
    EXPECT_EQ(seen.size(), names.size());
  }
}

TEST(Colours, MoreNamesThanLooksAreStillColoured) { EXPECT_EQ(looks_of(Names(300, "x")).size(), 300u); }

// Layers of usual models, and those of the committed profiles, mostly need no texture.
TEST(Colours, UsualLayersAreMostlyPlain) {
  const Names vllm = {"QKVParallelLinear(weight=bfloat16[6144, 4096])", "RowParallelLinear(weight=bfloat16[4096, 4096])",
                      "RowParallelLinear(weight=bfloat16[4096, 14336])", "MergedColumnParallelLinear(weight=bfloat16[28672, 4096])",
                      "RMSNorm(weight=bfloat16[4096])", "Attention", "SiluAndMul", "LogitsProcessor", "Sampler"};
  const Names mini = {"attn", "gate_up_proj", "qkv_proj", "down_proj", "o_proj", "post_attention_layernorm", "input_layernorm", "rotary_emb"};
  for (const Names& names : {vllm, mini}) {
    auto looks = looks_of(names);
    EXPECT_LE(std::ranges::count_if(looks, [](const Look& look) { return look.texture != Texture::kPlain; }), 2);
  }
}

// ---- colour vision

using Linear = std::array<double, 3>;

double linear(uint8_t channel) {
  double c = channel / 255.0;
  return c <= 0.04045 ? c / 12.92 : std::pow((c + 0.055) / 1.055, 2.4);
}

// Machado, Oliveira, Fernandes: "A Physiologically-based Model for Simulation of Color Vision Deficiency", 2009, severity 1.
constexpr double kVisions[4][3][3] = {
    {{1, 0, 0}, {0, 1, 0}, {0, 0, 1}},
    {{0.152286, 1.052583, -0.204868}, {0.114503, 0.786281, 0.099216}, {-0.003882, -0.048116, 1.051998}},
    {{0.367322, 0.860646, -0.227968}, {0.280085, 0.672501, 0.047413}, {-0.011820, 0.042940, 0.968881}},
    {{1.255528, -0.076749, -0.178779}, {-0.078411, 0.930809, 0.147602}, {0.004733, 0.691367, 0.303900}},
};

Linear times(const double (&matrix)[3][3], const Linear& v) {
  Linear result{};
  for (size_t row = 0; row < 3; ++row) {
    for (size_t i = 0; i < 3; ++i) result[row] += matrix[row][i] * v[i];
  }
  return result;
}

// Björn Ottosson's Oklab: distances are as people see them; white and black are 1 apart.
Linear oklab(Linear rgb) {
  constexpr double kCones[3][3] = {{0.4122214708, 0.5363325363, 0.0514459929}, {0.2119034982, 0.6806995451, 0.1073969566}, {0.0883024619, 0.2817188376, 0.6299787005}};
  constexpr double kLab[3][3] = {{0.2104542553, 0.7936177850, -0.0040720468}, {1.9779984951, -2.4285922050, 0.4505937099}, {0.0259040371, 0.7827717662, -0.8086757660}};
  for (double& c : rgb) c = std::clamp(c, 0.0, 1.0);
  Linear cones = times(kCones, rgb);
  for (double& c : cones) c = std::cbrt(c);
  return times(kLab, cones);
}

double least_distance(const Colour& a, const Colour& b) {
  double least = 1;
  for (const auto& vision : kVisions) {
    Linear x = oklab(times(vision, {linear(a.red), linear(a.green), linear(a.blue)}));
    Linear y = oklab(times(vision, {linear(b.red), linear(b.green), linear(b.blue)}));
    least = std::min(least, std::hypot(x[0] - y[0], x[1] - y[1], x[2] - y[2]));
  }
  return least;
}

TEST(Colours, AreToldApartByEveryColourVision) {
  std::vector<Colour> colours(all_colours().begin(), all_colours().end());
  size_t okabe_ito = 7;
  double floor = 1;  // what these allow between themselves
  for (size_t i = 0; i < okabe_ito; ++i) {
    for (size_t j = 0; j < i; ++j) floor = std::min(floor, least_distance(colours[i], colours[j]));
  }
  colours.push_back(colour_of(kOthers));
  colours.push_back({255, 255, 255});
  for (size_t i = okabe_ito; i < colours.size(); ++i) {
    for (size_t j = 0; j < i; ++j) EXPECT_GE(least_distance(colours[i], colours[j]), floor) << i << " and " << j << "; floor " << floor;
  }
}

}  // namespace
}  // namespace lamina
