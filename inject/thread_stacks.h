// What a thread knows of its call stacks.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "inject/known_callers.h"
#include "inject/stack_cache.h"
#include "inject/stacks.h"

namespace lamina {

// Made when the thread's first stack is asked for; all in pages of its own.
class ThreadStacks {
 public:
  static void* operator new(size_t bytes);
  static void operator delete(void* stacks) noexcept;

  // The calling thread's stack from the return address at `first` on; 0: none.
  uint32_t find(Stacks& stacks, const uintptr_t* first, const char* kernel);

  // Whether this thread has launched the kernel before. `kernel`: its name as CUPTI gives it, by where that lies.
  bool launched_before(const char* kernel) {
    const char*& known = kernels_[reinterpret_cast<uintptr_t>(kernel) / 8 % kernels_.size()];
    if (known == kernel) return true;
    known = kernel;
    return false;
  }

 private:
  StackCache cache_;
  KnownCallers known_callers_;
  uint32_t generation_ = 0;
  std::array<const char*, 1024> kernels_{};
  std::array<SavedReturn, Stacks::kMaxFrames> frames_;  // not on the program's stack, which may be small
};

}  // namespace lamina
