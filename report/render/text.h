// Text of a profile, which may hold anything, made fit to be shown.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace lamina {

// What is not UTF-8 becomes U+FFFD, a byte each.
std::string valid_utf8(std::string_view text);

// The same on one line of a terminal: control characters become spaces too.
std::string printable(std::string_view text);

// Both of valid UTF-8.
size_t characters(std::string_view text);
std::string_view first_characters(std::string_view text, size_t count);

}  // namespace lamina
