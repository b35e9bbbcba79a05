// One op with its inputs as a row of words: what the text of its range says, and no more. Ops whose keys are equal have
// equal texts, so a key is both what the caches compare and what the text is written from.
#pragma once

#include <ATen/core/ivalue.h>

#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

namespace lamina {

// A key is the op's name (its length, its bytes), then tokens, each followed by its payload. A token is a word: the kind
// in the lowest byte, a detail in the next (dtype, length of a text, device type), a number above (rank, device index).
enum class TokenKind : uint8_t {
  kNone,      // also an undefined tensor
  kTensor,    // detail: dtype, number: rank; payload: the sizes
  kUnsized,   // a tensor without plain sizes (nested, symbolic, sizes made by Python); detail: dtype
  kInt,       // payload: the value
  kUnsigned,  // payload: the value
  kDouble,    // payload: its bits
  kBool,      // payload: 0 or 1
  kComplex,   // payload: the bits of both parts
  kString,    // detail: length in bytes; number: 1 if it was cut; payload: the bytes
  kTypeName,  // the same, of something that is shown by the name of its type
  kDevice,    // detail: type, number: index + 1
  kListOpen,
  kListClose,
  kTupleOpen,
  kTupleClose,
  kMore,  // entries are left out here
};

struct Token {
  TokenKind kind;
  uint8_t detail = 0;
  uint32_t number = 0;

  static Token from_word(uint64_t word) {
    return {static_cast<TokenKind>(word & 0xff), static_cast<uint8_t>(word >> 8), static_cast<uint32_t>(word >> 32)};
  }
  uint64_t word() const {
    return static_cast<uint64_t>(kind) | static_cast<uint64_t>(detail) << 8 | static_cast<uint64_t>(number) << 32;
  }
  size_t payload_words() const;
  // Whether the payload is a value, for which `*` may stand, and not a part of what the op is.
  bool has_values() const { return kind != TokenKind::kTypeName; }
};

class OpKey {
 public:
  static constexpr size_t kMaxWords = 160;
  static constexpr size_t kMaxName = 255;

  // Leaves the words as they are: most of them are never used.
  OpKey() {}  // NOLINT(modernize-use-equals-default)

  void assign(const char* name, c10::ArrayRef<const c10::IValue> inputs) {
    set_name(name);
    for (const c10::IValue& input : inputs) add(input, 0);
    set_hash();
  }
  // The op alone, for when there are too many different inputs to tell them apart.
  void assign_name_only(const OpKey& other);
  // The same op and kinds of inputs, with all values left out.
  void assign_signature(const OpKey& other);

  bool operator==(const OpKey& other) const { return equals(other.hash_, other.words_, other.size_); }
  bool equals(uint64_t hash, const uint64_t* words, size_t size) const {
    return hash == hash_ && size == size_ && std::memcmp(words, words_, size * sizeof(uint64_t)) == 0;
  }
  uint64_t hash() const { return hash_; }
  size_t size() const { return size_; }
  const uint64_t* words() const { return words_; }

  std::string_view name() const { return {reinterpret_cast<const char*>(words_ + 1), words_[0]}; }
  size_t first_token() const { return 1 + text_words(words_[0]); }

  static constexpr size_t text_words(size_t bytes) { return (bytes + 7) / 8; }

 private:
  void set_name(const char* name);
  void set_hash();
  void add(const c10::IValue& value, int depth);
  void add_tensor(const c10::IValue& value);
  void add_rare(const c10::IValue& value, int depth);
  void add_entries(c10::ArrayRef<c10::IValue> entries, TokenKind open, TokenKind close, int depth);
  void add_text(TokenKind kind, std::string_view text);
  void add_token(Token token) {
    if (has_room(1)) [[likely]] words_[size_++] = token.word();
  }
  void add_value(Token token, uint64_t value) {
    if (!has_room(2)) [[unlikely]] return;
    words_[size_++] = token.word();
    words_[size_++] = value;
  }
  // One word is kept for saying that there is more.
  bool has_room(size_t words) {
    if (size_ + words < kMaxWords) [[likely]] return true;
    cut();
    return false;
  }
  void cut();

  uint64_t hash_ = 0;
  size_t size_ = 0;
  bool is_cut_ = false;
  uint64_t words_[kMaxWords];
};

// A key that is kept.
struct StoredKey {
  explicit StoredKey(const OpKey& key) : hash(key.hash()), words(key.words(), key.words() + key.size()) {}
  bool is(const OpKey& key) const { return key.equals(hash, words.data(), words.size()); }

  uint64_t hash;
  std::vector<uint64_t> words;
};

}  // namespace lamina
