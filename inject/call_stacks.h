// Which launches and graph nodes have a call stack in the profile.
#pragma once

namespace lamina {

class Recorder;
class ThreadLog;

// Says in the thread's stream from where the launch or node that comes next was called: where no op tells, and once for each
// kernel in ops too, since that shows which library it is from. `kernel`: mangled name of what is launched; null if not known.
void note_call_stack(Recorder& recorder, ThreadLog& log, const char* kernel);

}  // namespace lamina
