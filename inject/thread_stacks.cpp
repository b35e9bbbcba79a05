#include "inject/thread_stacks.h"

#include "inject/callback_memory.h"

namespace lamina {

void* ThreadStacks::operator new(size_t bytes) { return mapped_pages()->allocate(bytes); }

void ThreadStacks::operator delete(void* stacks) noexcept { mapped_pages()->deallocate(stacks, sizeof(ThreadStacks)); }

uint32_t ThreadStacks::find(Stacks& stacks, const uintptr_t* first, const char* kernel) {
  if (generation_ != stacks.generation()) [[unlikely]] {
    generation_ = stacks.generation();
    cache_.clear();
  }
  if (uint32_t known = cache_.find(first)) return known;
  size_t count = 0;
  uint32_t stack = stacks.unwind(first, kernel, known_callers_, frames_, &count);
  if (stack != 0) cache_.add({frames_.data(), count}, stack);
  return stack;
}

}  // namespace lamina
