// What the steps of a process are called.
#pragma once

#include <cstdint>
#include <string_view>

#include "report/records/definitions.h"
#include "report/records/profile_file.h"

namespace lamina {

struct PhaseStep {
  std::string_view phase;  // lives as long as the definitions
  uint32_t number = 1;     // of the phase's steps in this process
};

// The step itself, or what there is instead of one that does not count.
uint32_t counted_step(const ProcessDefinitions& definitions, uint32_t step, PhaseSource phases);

// Of a step that counts: `decode` 7, or `startup`, `(none)` and `all` for what is outside of every phase.
PhaseStep phase_step(const ProcessDefinitions& definitions, uint32_t step, PhaseSource phases);

}  // namespace lamina
