#include "report/names/trace_name.h"

namespace lamina {

std::string short_trace(std::string_view trace) {
  constexpr std::string_view kArrow = " <- ";
  size_t end = trace.find(kArrow);
  std::string result(trace.substr(0, end));
  while (end != std::string_view::npos) {
    trace.remove_prefix(end + kArrow.size());
    end = trace.find(kArrow);
    std::string_view op = trace.substr(0, end);
    result += kArrow;
    result += op.substr(0, op.find('('));
  }
  return result;
}

}  // namespace lamina
