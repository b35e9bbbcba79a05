#include "nvtx_hooks/text/call_key.h"

#include <algorithm>
#include <bit>

namespace lamina {
namespace {

// Does not cut through a character of UTF-8.
std::string_view cut_text(std::string_view text, size_t limit) {
  if (text.size() <= limit) return text;
  while (limit > 0 && (text[limit] & 0xc0) == 0x80) --limit;
  return text.substr(0, limit);
}

uint64_t mix(uint64_t a, uint64_t b) {
  auto product = static_cast<unsigned __int128>(a) * b;
  return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
}

}  // namespace

size_t Token::payload_words() const {
  switch (kind) {
    case TokenKind::kTensor: return number;
    case TokenKind::kInt:
    case TokenKind::kUnsigned:
    case TokenKind::kDouble:
    case TokenKind::kBool: return 1;
    case TokenKind::kComplex: return 2;
    case TokenKind::kString:
    case TokenKind::kTypeName:
    case TokenKind::kKeyword: return CallKey::text_words(detail);
    default: return 0;
  }
}

void CallKey::set_name(std::string_view name, std::string_view origin) {
  name = cut_text(name, kMaxName);
  origin = cut_text(origin, kMaxOrigin);
  size_ = 1 + text_words(name.size() + origin.size());
  words_[size_ - 1] = 0;
  words_[0] = name.size() | origin.size() << 8;
  char* bytes = reinterpret_cast<char*>(words_ + 1);
  std::memcpy(bytes, name.data(), name.size());
  if (!origin.empty()) std::memcpy(bytes + name.size(), origin.data(), origin.size());
  is_cut_ = false;
}

void CallKey::set_hash() {
  constexpr uint64_t kOdd = 0x9e3779b97f4a7c15, kOther = 0xd6e8feb86659fd93;
  uint64_t even = size_, odd = kOther;
  size_t i = 0;
  for (; i + 3 < size_; i += 4) {
    even = mix(even ^ words_[i], kOdd ^ words_[i + 1]);
    odd = mix(odd ^ words_[i + 2], kOther ^ words_[i + 3]);
  }
  for (; i < size_; ++i) even = mix(even ^ words_[i], kOdd);
  hash_ = mix(even ^ kOther, odd ^ kOdd);
}

void CallKey::assign_name_only(const CallKey& other) {
  size_ = other.first_token();
  std::copy_n(other.words_, size_, words_);
  add_token({TokenKind::kMore});
  set_hash();
}

void CallKey::assign_signature(const CallKey& other) {
  size_ = other.size_;
  std::copy_n(other.words_, size_, words_);
  for (size_t i = first_token(); i < size_;) {
    Token token = Token::from_word(words_[i++]);
    size_t payload = token.payload_words();
    if (token.has_values()) std::fill_n(words_ + i, payload, 0);
    i += payload;
  }
  set_hash();
}

void CallKey::add_complex(double real, double imaginary) {
  if (!has_room(3)) return;
  words_[size_++] = Token{TokenKind::kComplex}.word();
  words_[size_++] = std::bit_cast<uint64_t>(real);
  words_[size_++] = std::bit_cast<uint64_t>(imaginary);
}

void CallKey::add_text(TokenKind kind, std::string_view text) {
  std::string_view shown = cut_text(text, kMaxText);
  size_t words = text_words(shown.size());
  if (!has_room(1 + words)) return;
  words_[size_++] = Token{kind, static_cast<uint8_t>(shown.size()), shown.size() < text.size()}.word();
  if (words == 0) return;
  words_[size_ + words - 1] = 0;
  std::memcpy(words_ + size_, shown.data(), shown.size());
  size_ += words;
}

void CallKey::cut() {
  if (!is_cut_) words_[size_++] = Token{TokenKind::kMore}.word();
  is_cut_ = true;
}

}  // namespace lamina
