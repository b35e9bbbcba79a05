// Names of phases and of single steps: `decode_7` is step 7 of phase `decode`.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace lamina {

// What runs before the first phase and between phases: nothing that the program named.
inline bool is_unnamed_phase(std::string_view name) { return name == "startup" || name == "(none)"; }

struct StepName {
  std::string_view phase;
  uint32_t number;
};

// Nothing when the text is no NAME_N: then it can only be the name of a phase.
inline std::optional<StepName> split_step_name(std::string_view text) {
  constexpr size_t kMaxDigits = 9;
  size_t line = text.rfind('_');
  if (line == std::string_view::npos || line == 0) return std::nullopt;
  std::string_view digits = text.substr(line + 1);
  if (digits.empty() || digits.size() > kMaxDigits || (digits[0] == '0' && digits.size() > 1)) return std::nullopt;
  uint32_t number = 0;
  for (char digit : digits) {
    if (digit < '0' || digit > '9') return std::nullopt;
    number = number * 10 + static_cast<uint32_t>(digit - '0');
  }
  return StepName{text.substr(0, line), number};
}

}  // namespace lamina
