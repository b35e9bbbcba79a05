#include "report/attribution/python_literal.h"

namespace lamina {
namespace {

bool is_quote(char c) { return c == '\'' || c == '"'; }
bool opens(char c) { return c == '[' || c == '(' || c == '{'; }
bool closes(char c) { return c == ']' || c == ')' || c == '}'; }

// The closing quote of the string that begins at `at`; std::string_view::npos when there is none.
size_t closing_quote(std::string_view text, size_t at) {
  char quote = text[at];
  for (++at; at < text.size() && text[at] != quote; ++at) {
    if (text[at] == '\\') ++at;
  }
  return at < text.size() ? at : std::string_view::npos;
}

}  // namespace

size_t python_value_end(std::string_view text, size_t at) {
  int depth = 0;
  for (; at < text.size(); ++at) {
    char c = text[at];
    if (depth == 0 && (closes(c) || c == ',')) return at;
    if (is_quote(c)) {
      at = closing_quote(text, at);
      if (at == std::string_view::npos) return std::string_view::npos;
    } else if (opens(c)) {
      ++depth;
    } else if (closes(c)) {
      --depth;
    }
  }
  return depth == 0 ? text.size() : std::string_view::npos;
}

void for_each_python_entry(std::string_view dict,
                           const std::function<void(std::string_view key, std::string_view value)>& visit) {
  if (!dict.starts_with('{')) return;
  for (size_t at = 1; at < dict.size();) {
    at = dict.find_first_not_of(" ,", at);
    if (at == std::string_view::npos || !is_quote(dict[at])) return;
    size_t key_end = closing_quote(dict, at);
    if (key_end == std::string_view::npos) return;
    size_t value = dict.find_first_not_of(": ", key_end + 1);
    if (value == std::string_view::npos) return;
    size_t end = python_value_end(dict, value);
    if (end == std::string_view::npos) return;
    visit(dict.substr(at + 1, key_end - at - 1), dict.substr(value, end - value));
    at = end;
  }
}

std::string_view python_string(std::string_view literal) {
  if (literal.size() < 2 || !is_quote(literal.front()) || literal.back() != literal.front()) return {};
  return literal.substr(1, literal.size() - 2);
}

std::string_view python_items(std::string_view literal) {
  if (literal.size() < 2 || !opens(literal.front()) || !closes(literal.back())) return {};
  return literal.substr(1, literal.size() - 2);
}

}  // namespace lamina
