// Native call stacks by libunwind, found at run time: never linked, since it exports the C++ runtime's _Unwind_* functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "inject/known_callers.h"
#include "inject/saved_return.h"

namespace lamina {

class Unwinder {
 public:
  struct Unwound {
    size_t size = 0;                           // frames
    bool complete = false;                     // up to the outermost
    size_t new_size = 0;                       // the innermost frames that have no entry in the known callers
    uint32_t caller = KnownCallers::kUnknown;  // the entry outside of these
    uint32_t node = 0;                         // that entry's; 0: none
  };

  // Looks for libunwind.so.8 beside this library, then where libraries are found. False if there is none.
  bool open();

  // Fills `frames` with the calling thread's return addresses, innermost first, from the one at `first` on.
  // Takes up to some milliseconds for code that it sees first, and some microseconds later.
  Unwound unwind(const uintptr_t* first, std::span<SavedReturn> frames, const KnownCallers& known) const;

  // For code that has gone: other code may lie there. Not for use by several threads at once.
  void forget_code() const;

 private:
  using GetContext = int (*)(void* context);
  using InitLocal = int (*)(void* cursor, void* context);
  using Step = int (*)(void* cursor);
  using GetRegister = int (*)(void* cursor, int number, uintptr_t* value);
  using SetCacheSize = int (*)(void* address_space, size_t size, int flag);
  using FlushCache = void (*)(void* address_space, uintptr_t low, uintptr_t high);

  void enlarge_cache(void* library) const;
  int next(void* cursor, const uintptr_t* first, SavedReturn* frame) const;

  GetContext get_context_ = nullptr;
  InitLocal init_local_ = nullptr;
  Step step_ = nullptr;
  GetRegister get_register_ = nullptr;
  FlushCache flush_cache_ = nullptr;  // null in versions that lack it, as the next
  void** address_space_ = nullptr;
};

}  // namespace lamina
