// Which kind of work a kernel does: gemm, attention, norm, elementwise, memory, communication, quantisation, other.
#pragma once

#include <string>
#include <string_view>

namespace lamina {

class KernelGroups {
 public:
  // `name` as a report has it: a demangled kernel, `Memcpy …` or `Memset …`.
  std::string_view group_of(std::string_view name) const;
};

}  // namespace lamina
