// Which launches and graph nodes have a call stack in the profile.
#pragma once

#include "inject/recorder.h"

namespace lamina {

void find_call_stack(Recorder& recorder, ThreadLog& log, const char* kernel);

// Says in the thread's stream from where the launch or node that comes next was called: where no op tells, and once for each
// kernel in ops too, since that shows which library it is from. `kernel`: mangled name of what is launched; null if not known.
inline void note_call_stack(Recorder& recorder, ThreadLog& log, const char* kernel) {
  if (recorder.stacks.on()) find_call_stack(recorder, log, kernel);
}

}  // namespace lamina
