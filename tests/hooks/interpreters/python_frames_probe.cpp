// What programs of interpreters_test.py call: Python's frames as the recorder reads them, and launches from C.
#include <dlfcn.h>
#include <pthread.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <string>
#include <utility>

#include "inject/python_frames.h"

using namespace lamina;

// The frames of the calling thread, `function|file|line` in a line each, innermost first; `>` before those that C called.
extern "C" __attribute__((visibility("default"))) const char* read_frames() {
  static PythonFrames reader;
  static thread_local std::string text;
  std::array<PythonFrame, 64> frames;
  std::array<char, 300> function, file;
  reader.find_interpreter();
  size_t count = reader.read(frames);
  text.clear();
  for (const PythonFrame& frame : std::span(frames.data(), count)) {
    text += frame.anchor ? ">" : "";
    text.append(reader.function(frame, function)).append("|").append(reader.file(frame, file));
    text.append("|").append(std::to_string(reader.line(frame))).append("\n");
  }
  return text.c_str();
}

namespace {

thread_local bool is_caught = false;
thread_local int launches = 0;
std::atomic<int> threads_caught{0};

// The process does not end before they have read what they were about to.
__attribute__((destructor)) void wait_for_caught_threads() {
  while (threads_caught > 0) usleep(1000);
}

}  // namespace

// Where Python looks up a thread's state, if this library is preloaded. In a launch only the recorder asks for that: it gets
// its answer so late that Python can end in between.
extern "C" __attribute__((visibility("default"))) void* pthread_getspecific(pthread_key_t key) noexcept {
  static auto* next = reinterpret_cast<void* (*)(pthread_key_t)>(dlsym(RTLD_NEXT, "pthread_getspecific"));
  constexpr useconds_t kLateUs = 500'000;
  constexpr int kUnhurried = 100;  // the first one checks what it reads
  void* value = next(key);
  if (launches > kUnhurried && value) {
    if (!std::exchange(is_caught, true)) ++threads_caught;
    usleep(kLateUs);
  }
  return value;
}

// How many threads are in such a launch.
extern "C" __attribute__((visibility("default"))) int caught() { return threads_caught; }

// Launches `function` over and over.
extern "C" __attribute__((visibility("default"))) void launch_for(void* function, int milliseconds) {
  using Launch = int (*)(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void*, void**, void**);
  auto launch = reinterpret_cast<Launch>(dlsym(RTLD_DEFAULT, "cuLaunchKernel"));
  auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(milliseconds);
  while (launch && std::chrono::steady_clock::now() < end) {
    ++launches;
    launch(function, 1, 1, 1, 32, 1, 1, 0, nullptr, nullptr, nullptr);
    if (std::exchange(is_caught, false)) --threads_caught;
  }
  launches = 0;
}
