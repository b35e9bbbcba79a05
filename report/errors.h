// What ends a command early. main() catches these once, prints one line and turns them into the exit status.
#pragma once

#include <stdexcept>

namespace lamina {

// The input is bad, or incomplete beyond use: exit status 1. The message names the file and the place in it.
struct InputError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// The command was used wrongly: exit status 2.
struct UsageError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

}  // namespace lamina
