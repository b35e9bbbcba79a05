// Text of a profile, which may hold anything, made fit to be shown.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace lamina {

// Valid UTF-8 on one line: each byte that is none becomes U+FFFD, each control character a space.
std::string printable(std::string_view text);

// Both of valid UTF-8.
size_t characters(std::string_view text);
std::string_view first_characters(std::string_view text, size_t count);

}  // namespace lamina
