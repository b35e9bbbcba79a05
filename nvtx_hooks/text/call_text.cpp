#include "nvtx_hooks/text/call_text.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string_view>

namespace lamina {
namespace {

// The shortest digits that read back as the same number: "d[.ddd]e[+-]xx" with any decimal sign.
std::string shortest_digits(double value) {
  char text[40];
  for (int digits = 0; digits < 17; ++digits) {
    std::snprintf(text, sizeof(text), "%.*e", digits, value);
    if (std::strtod(text, nullptr) == value) break;
  }
  return text;
}

// repr() of a float. printf and iostreams know no such format, and to_chars chooses its exponents otherwise.
std::string float_text(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  std::string scientific = shortest_digits(std::fabs(value));
  size_t e = scientific.find('e');
  int exponent = std::atoi(scientific.c_str() + e + 1);
  std::string digits;
  for (char c : scientific.substr(0, e)) {
    if (c >= '0' && c <= '9') digits += c;
  }
  std::string out = std::signbit(value) ? "-" : "";
  int count = static_cast<int>(digits.size());
  if (exponent < -4 || exponent >= 16) {
    char suffix[16];
    std::snprintf(suffix, sizeof(suffix), "e%c%02d", exponent < 0 ? '-' : '+', std::abs(exponent));
    return out + digits[0] + (count > 1 ? "." + digits.substr(1) : "") + suffix;
  }
  if (exponent < 0) return out + "0." + std::string(-exponent - 1, '0') + digits;
  if (count <= exponent + 1) return out + digits + std::string(exponent + 1 - count, '0') + ".0";
  return out + digits.substr(0, exponent + 1) + "." + digits.substr(exponent + 1);
}

std::string complex_text(double real, double imaginary) {
  auto part = [](double value) {
    std::string text = float_text(value);
    return text.size() > 2 && text.ends_with(".0") ? text.substr(0, text.size() - 2) : text;
  };
  std::string text = part(imaginary) + "j";
  if (real == 0 && !std::signbit(real)) return text;
  return "(" + part(real) + (text[0] == '-' ? "" : "+") + text + ")";
}

class Writer {
 public:
  Writer(const CallKey& key, const Wildcards& wildcards) : key_(key), wildcards_(wildcards), at_(key.first_token()) {}

  std::string write() {
    std::string end = ")";
    if (!key_.origin().empty()) end.append(" <- ").append(key_.origin());
    out_ += key_.name();
    out_ += '(';
    while (at_ < key_.size() && out_.size() <= kMaxTextBytes) entry(Token::from_word(key_.words()[at_++]));
    if (out_.size() + end.size() > kMaxTextBytes) {
      cut(kMaxTextBytes - end.size() - 3);
      out_ += "...";
    }
    return out_ + end;
  }

 private:
  void entry(Token token) {
    bool closes = token.kind == TokenKind::kListClose || token.kind == TokenKind::kTupleClose;
    if (!closes && !first_) out_ += ", ";
    first_ = token.kind == TokenKind::kListOpen || token.kind == TokenKind::kTupleOpen || token.kind == TokenKind::kKeyword;
    write_token(token);
    at_ += token.payload_words();
  }

  void write_token(Token token) {
    switch (token.kind) {
      case TokenKind::kNone: out_ += "None"; break;
      case TokenKind::kTensor: write_tensor(token); break;
      case TokenKind::kUnsized: out_ += detail_name(token) + "[?]"; break;
      case TokenKind::kInt: write_value([&] { return std::to_string(static_cast<int64_t>(payload(0))); }); break;
      case TokenKind::kUnsigned: write_value([&] { return std::to_string(payload(0)); }); break;
      case TokenKind::kDouble: write_value([&] { return float_text(number(0)); }); break;
      case TokenKind::kBool: write_value([&] { return std::string(payload(0) ? "True" : "False"); }); break;
      case TokenKind::kComplex: write_value([&] { return complex_text(number(0), number(1)); }, 2); break;
      case TokenKind::kString: write_value([&] { return string_text(token); }, token.payload_words()); break;
      case TokenKind::kTypeName: out_ += payload_text(token); break;
      case TokenKind::kKeyword: (out_ += payload_text(token)) += '='; break;
      case TokenKind::kDevice: write_device(token); break;
      case TokenKind::kListOpen: out_ += '['; break;
      case TokenKind::kListClose: out_ += ']'; break;
      case TokenKind::kTupleOpen: out_ += '('; break;
      case TokenKind::kTupleClose: out_ += ')'; break;
      case TokenKind::kMore: out_ += "..."; break;
    }
  }

  template <typename Text>
  void write_value(Text text, size_t words = 1) {
    bool varies = false;
    for (size_t i = 0; i < words; ++i) varies |= wildcards_[at_ + i];
    out_ += varies ? "*" : text();
  }

  void write_tensor(Token token) {
    out_ += detail_name(token) + '[';
    for (size_t i = 0; i < token.number; ++i) {
      if (i > 0) out_ += ", ";
      out_ += wildcards_[at_ + i] ? "*" : std::to_string(static_cast<int64_t>(payload(i)));
    }
    out_ += ']';
  }

  void write_device(Token token) {
    out_ += detail_name(token);
    if (token.number > 0) out_ += ':' + std::to_string(token.number - 1);
  }

  std::string string_text(Token token) const {
    std::string text(payload_text(token));
    for (char& c : text) {
      if (static_cast<unsigned char>(c) < ' ') c = ' ';
    }
    return "'" + text + (token.number ? "...'" : "'");
  }

  uint64_t payload(size_t i) const { return key_.words()[at_ + i]; }
  double number(size_t i) const { return std::bit_cast<double>(payload(i)); }
  std::string_view payload_text(Token token) const {
    return {reinterpret_cast<const char*>(key_.words() + at_), token.detail};
  }

  // Does not cut through a character of UTF-8.
  void cut(size_t length) {
    length = std::min(out_.size(), length);
    while (length > 0 && (out_[length] & 0xc0) == 0x80) --length;
    out_.resize(length);
  }

  const CallKey& key_;
  const Wildcards& wildcards_;
  size_t at_;
  bool first_ = true;
  std::string out_;
};

}  // namespace

std::string call_text(const CallKey& key, const Wildcards& wildcards) { return Writer(key, wildcards).write(); }

}  // namespace lamina
