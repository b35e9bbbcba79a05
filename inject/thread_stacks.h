// What a thread knows of its call stacks.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

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
  // A stack is found by its native frames first, then by these with all that it consists of.
  struct Known {
    uint64_t hash = 0;
    uint32_t stack = 0;
  };
  static uint64_t hash_of(uint32_t native, std::span<const PythonFrame> python, const char* kernel);

  StackCache cache_;
  KnownCallers known_callers_;
  std::array<Known, 4096> known_{};
  uint32_t generation_ = 0;
  std::array<const char*, 1024> kernels_{};
  std::array<SavedReturn, Stacks::kMaxFrames> frames_;  // not on the program's stack, which may be small
  std::array<PythonFrame, Stacks::kMaxPythonFrames> python_;
};

}  // namespace lamina
