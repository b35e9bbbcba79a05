// One call with its arguments as a row of words: what the text of its range says, and no more. Calls whose keys are equal
// have equal texts, so a key is both what the caches compare and what the text is written from.
#pragma once

#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

namespace lamina {

// A key is the name of what is called and where that comes from (their lengths, their bytes), then tokens, each followed by
// its payload. A token is a word: the kind in the lowest byte, a detail in the next (dtype, length of a text, device type),
// a number above (rank, device index).
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
  kKeyword,   // the same, of the name that the next argument is given by
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
  // Whether the payload is a value, for which `*` may stand, and not a part of what the call is.
  bool has_values() const { return kind != TokenKind::kTypeName && kind != TokenKind::kKeyword; }
};

class CallKey {
 public:
  static constexpr size_t kMaxWords = 160;
  static constexpr size_t kMaxName = 255;
  static constexpr size_t kMaxOrigin = 100;
  static constexpr size_t kMaxText = 48;  // bytes of a string
  static constexpr int kMaxDepth = 4;  // lists in lists

  // Leaves the words as they are: most of them are never used.
  CallKey() {}  // NOLINT(modernize-use-equals-default)

  // What is called; `origin`: the file it comes from, or nothing.
  void set_name(std::string_view name, std::string_view origin = {});
  void add_token(Token token) {
    if (has_room(1)) [[likely]] words_[size_++] = token.word();
  }
  void add_value(Token token, uint64_t value) {
    if (!has_room(2)) [[unlikely]] return;
    words_[size_++] = token.word();
    words_[size_++] = value;
  }
  // A tensor whose sizes are filled in by the caller: null if there is no room.
  uint64_t* add_tensor(uint8_t dtype, size_t rank) {
    if (!has_room(1 + rank)) [[unlikely]] return nullptr;
    words_[size_] = Token{TokenKind::kTensor, dtype, static_cast<uint32_t>(rank)}.word();
    size_ += 1 + rank;
    return words_ + size_ - rank;
  }
  void add_complex(double real, double imaginary);
  void add_text(TokenKind kind, std::string_view text);
  bool is_cut() const { return is_cut_; }
  // After all that is added.
  void set_hash();

  // The call alone, for when there are too many different arguments to tell them apart.
  void assign_name_only(const CallKey& other);
  // The same call and kinds of arguments, with all values left out.
  void assign_signature(const CallKey& other);

  bool operator==(const CallKey& other) const { return equals(other.hash_, other.words_, other.size_); }
  bool equals(uint64_t hash, const uint64_t* words, size_t size) const {
    return hash == hash_ && size == size_ && std::memcmp(words, words_, size * sizeof(uint64_t)) == 0;
  }
  uint64_t hash() const { return hash_; }
  size_t size() const { return size_; }
  const uint64_t* words() const { return words_; }

  std::string_view name() const { return {bytes(), name_length()}; }
  std::string_view origin() const { return {bytes() + name_length(), origin_length()}; }
  size_t first_token() const { return 1 + text_words(name_length() + origin_length()); }

  static constexpr size_t text_words(size_t size) { return (size + 7) / 8; }

 private:
  const char* bytes() const { return reinterpret_cast<const char*>(words_ + 1); }
  size_t name_length() const { return words_[0] & 0xff; }
  size_t origin_length() const { return words_[0] >> 8; }
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
  explicit StoredKey(const CallKey& key) : hash(key.hash()), words(key.words(), key.words() + key.size()) {}
  bool is(const CallKey& key) const { return key.equals(hash, words.data(), words.size()); }

  uint64_t hash;
  std::vector<uint64_t> words;
};

}  // namespace lamina
