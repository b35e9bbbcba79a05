#include "report/load/json_text.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "report/errors.h"
#include "report/format.h"

namespace lamina {
namespace {

using nlohmann::ordered_json;

constexpr size_t kMaxMessage = 200;      // a parser's message quotes the last token, which may be megabytes
constexpr size_t kMaxKeysSearched = 16;  // objects with more keys get a set for finding a key that comes twice

std::string shortened(std::string text) {
  if (text.size() > kMaxMessage) text = text.substr(0, kMaxMessage) + "...";
  return text;
}

// Builds the document. The parser's own builder searches an object's keys for each new one.
class Builder : public nlohmann::json_sax<ordered_json> {
 public:
  explicit Builder(const std::string& file_name) : file_name_(file_name) {}

  ordered_json take() { return std::move(document_); }

  bool null() override { return add(nullptr); }
  bool boolean(bool value) override { return add(value); }
  bool number_integer(number_integer_t value) override { return add(value); }
  bool number_unsigned(number_unsigned_t value) override { return add(value); }
  bool number_float(number_float_t value, const string_t&) override { return add(value); }
  bool string(string_t& value) override { return add(std::move(value)); }
  bool binary(binary_t&) override { return false; }  // not in JSON text
  bool start_object(size_t) override { return open(ordered_json::object()); }
  bool start_array(size_t) override { return open(ordered_json::array()); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }

  bool key(string_t& key) override {
    Level& level = levels_.back();
    if (is_known(level, key)) fail(fmt::format("key '{}' comes twice", shortened(key)));
    level.key = std::move(key);
    return true;
  }

  bool parse_error(size_t, const std::string&, const ordered_json::exception& error) override {
    // "[json.exception.parse_error.101] parse error at line 1, column 2: what": the user needs what follows "at".
    std::string what = error.what();
    for (std::string_view before : {"] ", "parse error at "}) {
      if (size_t found = what.find(before); found < kMaxMessage) what.erase(0, found + before.size());
    }
    fail("not JSON: " + shortened(what));
  }

 private:
  // A container that is still open. Its own container does not grow meanwhile, so the pointer holds.
  struct Level {
    ordered_json* container;
    std::string key;                       // objects: of the value that comes next
    std::unordered_set<std::string> keys;  // objects of many keys
  };

  static bool is_known(Level& level, const std::string& key) {
    auto& members = level.container->get_ref<ordered_json::object_t&>();
    if (members.size() < kMaxKeysSearched) {
      return std::ranges::any_of(members, [&](const auto& member) { return member.first == key; });
    }
    if (level.keys.empty()) {
      for (const auto& member : members) level.keys.insert(member.first);
    }
    return !level.keys.insert(key).second;
  }

  bool add(ordered_json value) {
    place(std::move(value));
    return true;
  }

  bool open(ordered_json container) {
    if (levels_.size() == kMaxJsonDepth) fail(fmt::format("nested deeper than {} levels", kMaxJsonDepth));
    levels_.push_back({place(std::move(container)), {}, {}});
    return true;
  }

  bool close() {
    levels_.pop_back();
    return true;
  }

  ordered_json* place(ordered_json value) {
    if (levels_.empty()) return &(document_ = std::move(value));
    Level& level = levels_.back();
    if (level.container->is_array()) {
      level.container->push_back(std::move(value));
      return &level.container->back();
    }
    auto& members = level.container->get_ref<ordered_json::object_t&>();
    members.emplace_back(level.key, std::move(value));
    return &members.back().second;
  }

  [[noreturn]] void fail(const std::string& what) const { throw InputError(file_name_ + ": " + what); }

  const std::string& file_name_;
  ordered_json document_;
  std::vector<Level> levels_;
};

}  // namespace

nlohmann::ordered_json parse_json(const std::string& text, const std::string& file_name) {
  Builder builder(file_name);
  ordered_json::sax_parse(text, &builder);
  return builder.take();
}

}  // namespace lamina
