// _exit and _Exit, which end a process without its exit handlers: os._exit, a server's workers, a child of fork(). Where this
// library is preloaded its functions come before libc's, and write the end of the profile first.
#include <dlfcn.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "inject/recorder.h"

#define LAMINA_EXPORT extern "C" __attribute__((visibility("default")))

namespace {

using Exit = void (*)(int);
Exit next_exit = nullptr;  // libc's, or that of another preloaded library

__attribute__((constructor)) void find_next_exit() { next_exit = reinterpret_cast<Exit>(dlsym(RTLD_NEXT, "_exit")); }

[[noreturn]] void end_process(int status) {
  lamina::Recorder::before_immediate_exit();
  if (next_exit) next_exit(status);
  while (true) syscall(SYS_exit_group, status);
}

}  // namespace

LAMINA_EXPORT [[noreturn]] void _exit(int status) { end_process(status); }
LAMINA_EXPORT [[noreturn]] void _Exit(int status) noexcept { end_process(status); }
