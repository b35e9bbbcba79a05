#include "report/render/text.h"

#include <algorithm>

namespace lamina {
namespace {

constexpr std::string_view kReplacement = "\xef\xbf\xbd";  // U+FFFD

// How many bytes the UTF-8 character at the front of `text` has; 0 when there is none.
size_t character_size(std::string_view text) {
  auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  unsigned char first = byte(0);
  size_t size = first < 0x80 ? 1 : first < 0xc2 ? 0 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : first < 0xf5 ? 4 : 0;
  if (size > text.size()) return 0;
  for (size_t i = 1; i < size; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
  }
  return size;
}

// Whether a terminal would act on the character instead of showing it: C0, DEL and C1.
bool is_control(std::string_view character) {
  auto first = static_cast<unsigned char>(character[0]);
  if (character.size() == 1) return first < 0x20 || first == 0x7f;
  return first == 0xc2 && static_cast<unsigned char>(character[1]) < 0xa0;
}

bool starts_character(char byte) { return (static_cast<unsigned char>(byte) & 0xc0) != 0x80; }

}  // namespace

std::string printable(std::string_view text) {
  std::string result;
  result.reserve(text.size());
  while (!text.empty()) {
    size_t size = character_size(text);
    std::string_view character = text.substr(0, std::max<size_t>(size, 1));
    result += size == 0 ? kReplacement : is_control(character) ? " " : character;
    text.remove_prefix(character.size());
  }
  return result;
}

size_t characters(std::string_view text) { return static_cast<size_t>(std::ranges::count_if(text, starts_character)); }

std::string_view first_characters(std::string_view text, size_t count) {
  size_t end = 0;
  while (end < text.size() && (count > 0 || !starts_character(text[end]))) count -= starts_character(text[end++]);
  return text.substr(0, end);
}

}  // namespace lamina
