#include "inject/unwinder.h"

#include <dlfcn.h>
#include <ucontext.h>

#include <array>
#include <string>

namespace lamina {
namespace {

constexpr char kLibrary[] = "libunwind.so.8";

// libunwind's public ABI on x86-64 (libunwind-x86_64.h): unw_context_t is a ucontext_t, unw_cursor_t 127 words.
constexpr size_t kCursorWords = 127;
constexpr int kStackPointer = 7;
constexpr int kInstructionPointer = 16;

constexpr size_t kCachedAddresses = 4096;  // of the code, with what to do there; libunwind's default is 128

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

template <typename Function>
Function look_up(void* library, const char* name) {
  return reinterpret_cast<Function>(dlsym(library, name));
}

}  // namespace

bool Unwinder::open() {
  // A program that has loaded it by itself may be unwinding right now.
  bool is_programs = dlopen(kLibrary, RTLD_NOW | RTLD_NOLOAD) != nullptr;
  void* library = open_library();
  if (!library) return false;
  get_context_ = look_up<GetContext>(library, "_Ux86_64_getcontext");
  init_local_ = look_up<InitLocal>(library, "_ULx86_64_init_local");
  step_ = look_up<Step>(library, "_ULx86_64_step");
  get_register_ = look_up<GetRegister>(library, "_ULx86_64_get_reg");
  flush_cache_ = look_up<FlushCache>(library, "_Ux86_64_flush_cache");
  address_space_ = look_up<void**>(library, "_ULx86_64_local_addr_space");
  if (!get_context_ || !init_local_ || !step_ || !get_register_) return false;
  // libunwind sets itself up in the first call, not minding other threads.
  std::array<SavedReturn, 2> frames;
  unwind(LAMINA_SAVED_RETURN(), frames, KnownCallers());
  if (!is_programs) enlarge_cache(library);
  return true;
}

// libunwind ignores this before it has unwound, and does not lock.
void Unwinder::enlarge_cache(void* library) const {
  auto set_cache_size = look_up<SetCacheSize>(library, "_ULx86_64_set_cache_size");
  if (set_cache_size && address_space_) set_cache_size(*address_space_, kCachedAddresses, 0);
}

void Unwinder::forget_code() const {
  if (flush_cache_ && address_space_) flush_cache_(*address_space_, 0, 0);
}

// The next frame from the one at `first` on. Positive: there is one; 0: the last was the outermost; negative: unknown.
int Unwinder::next(void* cursor, const uintptr_t* first, SavedReturn* frame) const {
  for (;;) {
    int status = step_(cursor);
    if (status <= 0) return status;
    uintptr_t stack_pointer = 0, address = 0;
    if (get_register_(cursor, kStackPointer, &stack_pointer) != 0) return -1;
    if (get_register_(cursor, kInstructionPointer, &address) != 0) return -1;
    if (address == 0) return 0;
    // The call has pushed it; a signal's frame has no such place.
    auto* location = reinterpret_cast<const uintptr_t*>(stack_pointer) - 1;
    if (location < first) continue;
    if (*location != address) return -1;
    *frame = {location, address};
    return status;
  }
}

Unwinder::Unwound Unwinder::unwind(const uintptr_t* first, std::span<SavedReturn> frames,
                                   const KnownCallers& known) const {
  Unwound unwound;
  ucontext_t context;
  uintptr_t cursor[kCursorWords];
  if (get_context_(&context) != 0 || init_local_(cursor, &context) != 0) return unwound;
  size_t size = 0;
  int status = 1;
  const uintptr_t* compared = nullptr;  // the chains of the frames up to there lead to a caller that is not there
  while (size < frames.size() && (status = next(cursor, first, &frames[size])) > 0) {
    const SavedReturn& frame = frames[size];
    if (size > 0 && frame.location <= frames[size - 1].location) {
      status = -1;
      break;
    }
    ++size;
    if (size == 1 || frame.location <= compared) continue;  // the innermost frame is no caller
    KnownCallers::Chain chain = known.find(frame, frames.subspan(size));
    if (chain.enough) return {size + chain.size, chain.complete, size - 1, chain.entry, chain.node};
    compared = frames[size - 1 + chain.size].location;
  }
  bool complete = status == 0;
  return {size, complete, size, complete ? KnownCallers::kNone : KnownCallers::kUnknown, 0};
}

}  // namespace lamina
