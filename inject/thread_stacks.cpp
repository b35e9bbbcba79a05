#include "inject/thread_stacks.h"

#include "inject/callback_memory.h"

namespace lamina {
namespace {

// Of the cached ids: a stack that has none, and is not unwound again for that; one in which Python functions run.
constexpr uint32_t kPastLimits = UINT32_MAX;
constexpr uint32_t kRunsPython = 1u << 31;
static_assert(Stacks::kMaxNodes < kRunsPython);

}  // namespace

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
  uint32_t known_as = cache_.find(first);
  if (known_as == 0) [[unlikely]] {
    uint32_t native = stacks.unwind(first, known_callers_, frames_, &count);
    if (count == 0) return 0;
    std::span<const SavedReturn> frames(frames_.data(), count);
    known_as = native == 0 ? kPastLimits : stacks.runs_python(frames) ? native | kRunsPython : native;
    cache_.add(frames, known_as);
  }
  if (known_as == kPastLimits) return stacks.lose(), 0;
  uint32_t native = known_as & ~kRunsPython;
  PythonEnd::Reader reader(known_as != native ? &stacks.python_end() : nullptr, this);
  std::span<const PythonFrame> python(python_.data(), reader.may_read() ? stacks.read_python(python_) : 0);
  uint64_t hash = hash_of(native, python, kernel);
  Known& known = known_[hash % known_.size()];
  if (known.hash == hash && known.stack != 0) return known.stack;
  if (count == 0) count = cache_.found_frames(first, frames_);
  known = {hash, stacks.complete(native, {frames_.data(), count}, python, kernel)};
  return known.stack;
}

}  // namespace lamina
