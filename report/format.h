// fmt::format, with fmt itself compiled in one file and not in each that formats something: half of the time to compile them.
// Within this project `fmt::` is this namespace; texts, arguments and the check of both by the compiler are fmt's
// (https://fmt.dev/latest/syntax).
#pragma once

#include <fmt/core.h>

#include <string>
#include <string_view>
#include <utility>

namespace lamina::fmt {

void append_formatted(std::string& into, ::fmt::string_view text, ::fmt::format_args args);

template <typename... Args>
void append(std::string& into, ::fmt::format_string<Args...> text, Args&&... args) {
  append_formatted(into, text, ::fmt::make_format_args(args...));
}

template <typename... Args>
std::string format(::fmt::format_string<Args...> text, Args&&... args) {
  std::string formatted;
  append_formatted(formatted, text, ::fmt::make_format_args(args...));
  return formatted;
}

// "a, b, c"
template <typename Texts>
std::string join(const Texts& texts, std::string_view between) {
  std::string joined;
  bool first = true;
  for (const auto& text : texts) {
    if (!std::exchange(first, false)) joined += between;
    joined += text;
  }
  return joined;
}

}  // namespace lamina::fmt
