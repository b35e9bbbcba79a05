#include "inject/call_stacks.h"

#include "inject/callback_memory.h"
#include "inject/guarded.h"
#include "inject/recorder.h"

namespace lamina {

using namespace format;

void* ThreadStacks::operator new(size_t bytes) { return mapped_pages()->allocate(bytes); }

void ThreadStacks::operator delete(void* stacks) noexcept { mapped_pages()->deallocate(stacks, sizeof(ThreadStacks)); }

uint32_t ThreadStacks::find(Stacks& stacks, const uintptr_t* first, const char* kernel) {
  if (generation_ != stacks.generation()) [[unlikely]] {
    generation_ = stacks.generation();
    cache_.clear();
  }
  if (uint32_t known = cache_.find(first)) return known;
  size_t count = 0;
  uint32_t stack = stacks.unwind(first, kernel, frames_, &count);
  if (stack != 0) cache_.add({frames_.data(), count}, stack);
  return stack;
}

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
