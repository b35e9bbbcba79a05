// Where a frame keeps the address that it returns to.
#pragma once

#include <cstdint>

namespace lamina {

struct SavedReturn {
  const uintptr_t* location;
  uintptr_t address;

  bool operator==(const SavedReturn&) const = default;
};

// The saved return address of the function that this stands in. The functions that it has called are gone from the
// stack.
#define LAMINA_SAVED_RETURN() (static_cast<const uintptr_t*>(__builtin_frame_address(0)) + 1)

}  // namespace lamina
