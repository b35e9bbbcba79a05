// Reads Python literals as repr() writes them: {'weight': [6144, 4096], 'name': "it's"}. Only as deep as asked: values
// are handed out as they stand in the text, and what is cut off is left out.
#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace lamina {

// Where the value that begins at `at` ends: before the comma or bracket behind it, or at the end of the text; npos when
// it is cut off there.
size_t python_value_end(std::string_view text, size_t at);

// Calls `visit` for each entry of a dict literal: the key without its quotes, the value as it stands.
void for_each_python_entry(std::string_view dict,
                           const std::function<void(std::string_view key, std::string_view value)>& visit);

// The text of a string literal, without its quotes; empty when it is none.
std::string_view python_string(std::string_view literal);

// What stands between the brackets of a list, tuple or dict; empty when it is none.
std::string_view python_items(std::string_view literal);

}  // namespace lamina
