// The library's headers have its code in them when this is set. Only here: distributions have it beside the headers as a shared
// library, which the command would then need wherever it is copied to.
#define FMT_HEADER_ONLY

#include "report/format.h"

#include <fmt/format.h>

#include <iterator>

namespace lamina::fmt {

void append_formatted(std::string& into, ::fmt::string_view text, ::fmt::format_args args) {
  ::fmt::vformat_to(std::back_inserter(into), text, args);
}

}  // namespace lamina::fmt
