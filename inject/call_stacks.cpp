#include "inject/call_stacks.h"

#include "inject/guarded.h"
#include "inject/recorder.h"
#include "inject/thread_stacks.h"

namespace lamina {

using namespace format;

[[gnu::noinline]] void note_call_stack(Recorder& recorder, ThreadLog& log, const char* kernel) {
  if (!recorder.stacks.on()) return;
  if (!log.stacks) log.stacks = guarded([] { return new ThreadStacks; });
  if (!log.stacks) return;
  bool new_kernel = kernel && !log.stacks->launched_before(kernel);
  if (log.in_op() && !new_kernel) return;
  uint32_t stack = log.stacks->find(recorder.stacks, LAMINA_SAVED_RETURN(), kernel);
  if (stack != 0) log.append(RecordKind::kCallStack, 0, stack, CallStackRecord{});
}

}  // namespace lamina
