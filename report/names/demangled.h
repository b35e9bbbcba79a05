// The parts of a demangled C++ name, as far as names for people need them. Nothing here fails: names may be cut, and what
// is not understood is left out or stays as it is. Time grows with the length of the name.
#pragma once

#include <string_view>
#include <vector>

namespace lamina {

// One scope: in `a::f<int, 4>(char*)::{lambda(float)#1}` the second has the arguments `int, 4` and the parameters `char*`.
struct NamePart {
  std::string_view name;
  std::string_view arguments;   // of the template
  std::string_view parameters;  // of the function
};

// Whether the part is a lambda or its call.
bool is_lambda(const NamePart& part);

// Without return type, and without anonymous namespaces.
std::vector<NamePart> name_parts(std::string_view demangled);

// What stands between commas outside of brackets.
std::vector<std::string_view> split_arguments(std::string_view arguments);

// The value of a number or enumerator as demanglers write them: `4`, `4u`, `(int)4`, `(Mode)1`; else -1.
long number_of(std::string_view argument);

}  // namespace lamina
