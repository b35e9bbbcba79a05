#include "inject/unwinder.h"

#include <dlfcn.h>
#include <ucontext.h>

#include <string>

namespace lamina {
namespace {

constexpr char kLibrary[] = "libunwind.so.8";

// libunwind's public ABI on x86-64 (libunwind-x86_64.h): unw_context_t is a ucontext_t, unw_cursor_t 127 words.
constexpr size_t kCursorWords = 127;
constexpr int kStackPointer = 7;
constexpr int kInstructionPointer = 16;

std::string own_folder() {
  Dl_info info;
  if (!dladdr(reinterpret_cast<void*>(&own_folder), &info) || !info.dli_fname) return "";
  std::string path = info.dli_fname;
  return path.substr(0, path.rfind('/') + 1);
}

void* open_library() {
  void* beside = dlopen((own_folder() + kLibrary).c_str(), RTLD_NOW | RTLD_LOCAL);
  return beside ? beside : dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL);
}

}  // namespace

bool Unwinder::open() {
  void* library = open_library();
  if (!library) return false;
  get_context_ = reinterpret_cast<GetContext>(dlsym(library, "_Ux86_64_getcontext"));
  init_local_ = reinterpret_cast<InitLocal>(dlsym(library, "_ULx86_64_init_local"));
  step_ = reinterpret_cast<Step>(dlsym(library, "_ULx86_64_step"));
  get_register_ = reinterpret_cast<GetRegister>(dlsym(library, "_ULx86_64_get_reg"));
  return get_context_ && init_local_ && step_ && get_register_;
}

size_t Unwinder::unwind(const uintptr_t* first, std::span<SavedReturn> frames) const {
  ucontext_t context;
  uintptr_t cursor[kCursorWords];
  if (get_context_(&context) != 0 || init_local_(cursor, &context) != 0) return 0;
  size_t count = 0;
  while (count < frames.size() && step_(cursor) > 0) {
    uintptr_t stack_pointer = 0, address = 0;
    if (get_register_(cursor, kStackPointer, &stack_pointer) != 0) break;
    if (get_register_(cursor, kInstructionPointer, &address) != 0 || address == 0) break;
    // The call has pushed it; a signal's frame has no such place.
    auto* location = reinterpret_cast<const uintptr_t*>(stack_pointer) - 1;
    if (location < first) continue;
    if (*location != address || (count > 0 && location <= frames[count - 1].location)) break;
    frames[count++] = {location, address};
  }
  return count;
}

}  // namespace lamina
