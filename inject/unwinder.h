// Native call stacks by libunwind, found at run time: never linked, since it exports the C++ runtime's _Unwind_* functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace lamina {

// Where a frame keeps the address that it returns to.
struct SavedReturn {
  const uintptr_t* location;
  uintptr_t address;
};

// The saved return address of the function that this stands in. The functions that it has called are gone from the stack.
#define LAMINA_SAVED_RETURN() (static_cast<const uintptr_t*>(__builtin_frame_address(0)) + 1)

class Unwinder {
 public:
  // Looks for libunwind.so.8 beside this library, then where libraries are found. False if there is none.
  bool open();

  // Fills `frames` with the calling thread's return addresses, innermost first, from the one at `first` on; gives how many.
  // Takes up to some milliseconds for code that it sees first, and some microseconds later.
  size_t unwind(const uintptr_t* first, std::span<SavedReturn> frames) const;

 private:
  using GetContext = int (*)(void* context);
  using InitLocal = int (*)(void* cursor, void* context);
  using Step = int (*)(void* cursor);
  using GetRegister = int (*)(void* cursor, int number, uintptr_t* value);

  GetContext get_context_ = nullptr;
  InitLocal init_local_ = nullptr;
  Step step_ = nullptr;
  GetRegister get_register_ = nullptr;
};

}  // namespace lamina
