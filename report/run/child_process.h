// Runs a program as if it had been started directly: same terminal, same signals, same exit status.
#pragma once

#include <string>

#include "report/run/launch.h"

namespace lamina {

struct ProgramEnd {
  int status = 0;      // as a shell has it: the program's own, or 128 + the signal that ended it
  int exec_error = 0;  // errno when the program could not be started; status is then 127, or 126 when it was found
};

// Runs `arguments` with `variables` added to the environment and waits for its end. Signals that arrive meanwhile go on
// to the program; when it stops, so does this process. Throws std::runtime_error when no process can be made.
ProgramEnd run_program(const std::vector<std::string>& arguments, const Variables& variables);

}  // namespace lamina
