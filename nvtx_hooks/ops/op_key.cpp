#include "op_key.h"

#include <ATen/core/class_type.h>
#include <ATen/core/ivalue.h>
#include <c10/core/ScalarType.h>
#include <c10/core/TensorImpl.h>
#include <c10/core/UndefinedTensorImpl.h>

#include <algorithm>
#include <bit>

namespace lamina {
namespace {

constexpr size_t kMaxText = 48;     // bytes of a string
constexpr size_t kMaxTensors = 8;   // entries of a list
constexpr size_t kMaxScalars = 16;  // entries of a list
constexpr int kMaxDepth = 4;        // lists in lists

// Sizes are read from where the tensor keeps them. sizes() would call into Python, or throw, for a tensor whose sizes are
// made by something else; whether they are, only a derived class may ask.
struct SizesPolicy : c10::TensorImpl {
  static bool is_plain(const c10::TensorImpl& tensor) {
    return !(tensor.*&SizesPolicy::matches_policy)(SizesStridesPolicy::CustomSizes) && !tensor.has_symbolic_sizes_strides();
  }
};

uint8_t dtype_of(const c10::TensorImpl& tensor) {
  caffe2::TypeMeta type = tensor.dtype();
  c10::ScalarType scalar = type.isScalarType() ? type.toScalarType() : c10::ScalarType::Undefined;
  return static_cast<uint8_t>(scalar);
}

// Does not cut through a character of UTF-8.
std::string_view cut_text(std::string_view text) {
  if (text.size() <= kMaxText) return text;
  size_t length = kMaxText;
  while (length > 0 && (text[length] & 0xc0) == 0x80) --length;
  return text.substr(0, length);
}

std::string_view class_name(const c10::ivalue::Object& object) {
  std::shared_ptr<c10::ClassType> type = object.type();
  return type && type->name() ? std::string_view(type->name()->name()) : "object";
}

// What neither has a value to show nor is common. The names are those of Python.
std::string_view type_name(const c10::IValue& value) {
  if (value.isGenerator()) return "Generator";
  if (value.isStream()) return "Stream";
  if (value.isStorage()) return "Storage";
  if (value.isGenericDict()) return "dict";
  if (value.isFuture()) return "Future";
  if (value.isEnum()) return "Enum";
  if (value.isSymInt()) return "SymInt";
  if (value.isSymFloat()) return "SymFloat";
  return "object";
}

// A number beyond int64_t, which not all versions know.
template <typename Value>
bool is_unsigned(const Value& value, uint64_t& number) {
  if constexpr (requires { value.toUInt(); }) {
    if (value.isUnsigned()) {
      number = value.toUInt();
      return true;
    }
  }
  return false;
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
    case TokenKind::kTypeName: return OpKey::text_words(detail);
    default: return 0;
  }
}

void OpKey::set_name(const char* name) {
  size_t length = std::min(std::strlen(name), kMaxName);
  size_ = 1 + text_words(length);
  words_[size_ - 1] = 0;
  words_[0] = length;
  std::memcpy(words_ + 1, name, length);
  is_cut_ = false;
}

void OpKey::set_hash() {
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

void OpKey::assign_name_only(const OpKey& other) {
  size_ = other.first_token();
  std::copy_n(other.words_, size_, words_);
  add_token({TokenKind::kMore});
  set_hash();
}

void OpKey::assign_signature(const OpKey& other) {
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

void OpKey::add(const c10::IValue& value, int depth) {
  if (is_cut_) return;
  if (value.isTensor()) return add_tensor(value);
  if (value.isNone()) return add_token({TokenKind::kNone});
  if (value.isInt()) return add_value({TokenKind::kInt}, static_cast<uint64_t>(value.toInt()));
  if (value.isBool()) return add_value({TokenKind::kBool}, value.toBool());
  if (value.isDouble()) return add_value({TokenKind::kDouble}, std::bit_cast<uint64_t>(value.toDouble()));
  if (value.isList()) return add_entries(value.toListRef(), TokenKind::kListOpen, TokenKind::kListClose, depth);
  add_rare(value, depth);
}

void OpKey::add_tensor(const c10::IValue& value) {
  const c10::TensorImpl* tensor = value.unsafeToTensorImpl();
  if (!tensor || tensor == c10::UndefinedTensorImpl::singleton()) return add_token({TokenKind::kNone});
  if (!SizesPolicy::is_plain(*tensor)) return add_token({TokenKind::kUnsized, dtype_of(*tensor)});
  c10::IntArrayRef sizes = tensor->sizes_default();
  if (!has_room(1 + sizes.size())) return;
  words_[size_++] = Token{TokenKind::kTensor, dtype_of(*tensor), static_cast<uint32_t>(sizes.size())}.word();
  for (int64_t size : sizes) words_[size_++] = static_cast<uint64_t>(size);
}

void OpKey::add_rare(const c10::IValue& value, int depth) {
  if (value.isString()) return add_text(TokenKind::kString, value.toStringRef());
  if (value.isDevice()) {
    c10::Device device = value.toDevice();
    return add_token({TokenKind::kDevice, static_cast<uint8_t>(device.type()), static_cast<uint32_t>(device.index() + 1)});
  }
  if (value.isTuple()) {
    return add_entries(value.toTupleRef().elements(), TokenKind::kTupleOpen, TokenKind::kTupleClose, depth);
  }
  if (value.isComplexDouble()) {
    c10::complex<double> number = value.toComplexDouble();
    if (!has_room(3)) return;
    words_[size_++] = Token{TokenKind::kComplex}.word();
    words_[size_++] = std::bit_cast<uint64_t>(number.real());
    words_[size_++] = std::bit_cast<uint64_t>(number.imag());
    return;
  }
  if (value.isObject()) return add_text(TokenKind::kTypeName, class_name(value.toObjectRef()));
  uint64_t number = 0;
  if (is_unsigned(value, number)) return add_value({TokenKind::kUnsigned}, number);
  add_text(TokenKind::kTypeName, type_name(value));
}

void OpKey::add_entries(c10::ArrayRef<c10::IValue> entries, TokenKind open, TokenKind close, int depth) {
  add_token({open});
  bool scalars = !entries.empty() && entries[0].isScalar();
  size_t shown = depth < kMaxDepth ? std::min(entries.size(), scalars ? kMaxScalars : kMaxTensors) : 0;
  for (size_t i = 0; i < shown; ++i) add(entries[i], depth + 1);
  if (shown < entries.size()) add_token({TokenKind::kMore});
  add_token({close});
}

void OpKey::add_text(TokenKind kind, std::string_view text) {
  std::string_view shown = cut_text(text);
  size_t words = text_words(shown.size());
  if (!has_room(1 + words)) return;
  words_[size_++] = Token{kind, static_cast<uint8_t>(shown.size()), shown.size() < text.size()}.word();
  if (words == 0) return;
  words_[size_ + words - 1] = 0;
  std::memcpy(words_ + size_, shown.data(), shown.size());
  size_ += words;
}

void OpKey::cut() {
  if (!is_cut_) words_[size_++] = Token{TokenKind::kMore}.word();
  is_cut_ = true;
}

}  // namespace lamina
