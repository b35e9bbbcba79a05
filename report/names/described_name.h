// What a readable name is made of: `vectorized_elementwise(add, float)`.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace lamina {

struct DescribedName {
  std::string base;
  std::vector<std::string> details = {};  // what tells kernels of one base apart

  void add(std::string detail);  // unless it is empty or there already
  std::string text() const;
};

// Without an ending such as `_kernel`, unless nothing else is there.
std::string_view without_kernel(std::string_view name);

}  // namespace lamina
