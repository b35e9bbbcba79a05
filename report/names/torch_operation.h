// What a kernel of PyTorch does to each element, from the functor among its template arguments.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace lamina {

struct Operation {
  std::string name;   // `add`, `add_scalar`
  std::string dtype;  // may not be known: empty
};

// None when the argument is a type or a number.
std::optional<Operation> operation_of(std::string_view argument);

}  // namespace lamina
