// Random changes to a small profile, the same at every run, and the inputs that once broke something: the report must
// live through all of them.
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>

#include "fuzz_profile.h"
#include "fuzz_seed.h"

namespace {

constexpr int kRounds = 1000;

std::span<const uint8_t> bytes_of(const std::string& text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

std::string mutated(std::string text, std::mt19937& random) {
  size_t changes = 1 + random() % 8;
  for (size_t i = 0; i < changes && !text.empty(); ++i) {
    size_t at = random() % text.size();
    size_t length = std::min<size_t>(8 * (1 + random() % 12), text.size() - at);
    switch (random() % 5) {
      case 0:
        text[at] = static_cast<char>(random());
        break;
      case 1:
        text[at] = static_cast<char>(text[at] ^ (1 << random() % 8));
        break;
      case 2:
        text.erase(at, length);
        break;
      case 3:
        text.insert(at, text.substr(random() % text.size(), length));
        break;
      default:
        text[at / 8 * 8 + random() % 8 % std::min<size_t>(8, text.size() - at / 8 * 8)] =
            static_cast<char>(random() % 70);
    }
  }
  return text;
}

}  // namespace

int main(int argc, char** argv) {
  std::mt19937 random(1);
  const std::string profile = lamina::seed_profile();
  const std::string records = lamina::seed_records();
  for (int round = 0; round < kRounds; ++round) {
    lamina::read_as_profile(bytes_of(mutated(profile, random)));
    lamina::read_as_records(bytes_of(mutated(records, random)));
  }
  int files = 0;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(argc > 1 ? argv[1] : "regressions", error)) {
    std::ifstream file(entry.path(), std::ios::binary);
    std::string input{std::istreambuf_iterator<char>(file), {}};
    lamina::read_as_profile(bytes_of(input));
    lamina::read_as_records(bytes_of(input));
    ++files;
  }
  printf("%d random inputs, %d regressions\n", 2 * kRounds, files);
}
