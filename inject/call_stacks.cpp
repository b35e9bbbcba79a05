#include "inject/call_stacks.h"

#include "inject/guarded.h"
#include "inject/thread_stacks.h"

namespace lamina {

[[gnu::noinline]] void find_call_stack(Recorder& recorder, ThreadLog& log, const char* kernel) {
  if (!log.stacks) log.stacks = guarded([] { return new ThreadStacks; });
  if (!log.stacks) return;
  bool new_kernel = kernel && !log.stacks->launched_before(kernel);
  bool wanted = new_kernel || !log.in_op();
  log.sync_stack(wanted ? log.stacks->find(recorder.stacks, LAMINA_SAVED_RETURN(), kernel) : 0);
}

}  // namespace lamina
