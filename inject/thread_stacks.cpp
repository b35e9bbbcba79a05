#include "inject/thread_stacks.h"

#include "inject/callback_memory.h"

namespace lamina {

void* ThreadStacks::operator new(size_t bytes) { return mapped_pages()->allocate(bytes); }

void ThreadStacks::operator delete(void* stacks) noexcept { mapped_pages()->deallocate(stacks, sizeof(ThreadStacks)); }

uint64_t ThreadStacks::hash_of(uint32_t native, std::span<const PythonFrame> python, const char* kernel) {
  uint64_t hash = reinterpret_cast<uintptr_t>(kernel) ^ static_cast<uint64_t>(native) << 32;
  for (const PythonFrame& frame : python) hash = PythonFrame::mix(hash ^ frame.hash);
  return PythonFrame::mix(hash);
}

uint32_t ThreadStacks::find(Stacks& stacks, const uintptr_t* first, const char* kernel) {
  if (generation_ != stacks.generation()) [[unlikely]] {
    generation_ = stacks.generation();
    cache_.clear();
    known_.fill({});
  }
  size_t count = 0;
  uint32_t native = cache_.find(first);
  if (native == 0) [[unlikely]] {
    native = stacks.unwind(first, known_callers_, frames_, &count);
    if (native == 0) return 0;
    cache_.add({frames_.data(), count}, native);
  }
  std::span<const PythonFrame> python(python_.data(), stacks.read_python(python_));
  uint64_t hash = hash_of(native, python, kernel);
  Known& known = known_[hash % known_.size()];
  if (known.hash == hash && known.stack != 0) return known.stack;
  if (count == 0) count = cache_.found_frames(first, frames_);
  known = {hash, stacks.complete(native, {frames_.data(), count}, python, kernel)};
  return known.stack;
}

}  // namespace lamina
