#include "op_key.h"

#include <ATen/core/class_type.h>
#include <ATen/core/ivalue.h>
#include <c10/core/DeviceType.h>
#include <c10/core/ScalarType.h>
#include <c10/core/TensorImpl.h>
#include <c10/core/UndefinedTensorImpl.h>

#include <algorithm>
#include <bit>
#include <cctype>
#include <string>

#include "nvtx_hooks/text/call_text.h"

namespace lamina {
namespace {

constexpr size_t kMaxTensors = 8;   // entries of a list
constexpr size_t kMaxScalars = 16;  // entries of a list

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

struct Name {
  std::string_view torch, python;
};

// The scalar types that Python calls otherwise. The names of all others are the same but for capitals.
constexpr Name kDtypes[] = {
    {"Byte", "uint8"},           {"Char", "int8"},      {"Short", "int16"},          {"Int", "int32"},
    {"Long", "int64"},           {"Half", "float16"},   {"Float", "float32"},        {"Double", "float64"},
    {"ComplexHalf", "complex32"}, {"ComplexFloat", "complex64"}, {"ComplexDouble", "complex128"}, {"Undefined", "undefined"},
};

std::string dtype_name(uint8_t dtype) {
  std::string_view name = c10::toString(static_cast<c10::ScalarType>(dtype));
  for (const Name& known : kDtypes) {
    if (known.torch == name) return std::string(known.python);
  }
  std::string lower(name);
  for (char& c : lower) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return lower;
}

}  // namespace

std::string detail_name(Token token) {
  if (token.kind != TokenKind::kDevice) return dtype_name(token.detail);
  return c10::DeviceTypeName(static_cast<c10::DeviceType>(token.detail), /*lower_case=*/true);
}

void OpKey::add(const c10::IValue& value, int depth) {
  if (is_cut()) return;
  if (value.isTensor()) return add(value.unsafeToTensorImpl());
  if (value.isNone()) return add_token({TokenKind::kNone});
  if (value.isInt()) return add_value({TokenKind::kInt}, static_cast<uint64_t>(value.toInt()));
  if (value.isBool()) return add_value({TokenKind::kBool}, value.toBool());
  if (value.isDouble()) return add_value({TokenKind::kDouble}, std::bit_cast<uint64_t>(value.toDouble()));
  if (value.isList()) return add_entries(value.toListRef(), TokenKind::kListOpen, TokenKind::kListClose, depth);
  add_rare(value, depth);
}

void OpKey::add(const c10::TensorImpl* tensor) {
  if (!tensor || tensor == c10::UndefinedTensorImpl::singleton()) return add_token({TokenKind::kNone});
  if (!SizesPolicy::is_plain(*tensor)) return add_token({TokenKind::kUnsized, dtype_of(*tensor)});
  c10::IntArrayRef sizes = tensor->sizes_default();
  uint64_t* words = add_tensor(dtype_of(*tensor), sizes.size());
  if (words) std::copy(sizes.begin(), sizes.end(), words);
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
    return add_complex(number.real(), number.imag());
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

}  // namespace lamina
