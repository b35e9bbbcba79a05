// What programs of interpreters_test.py call: Python's frames as the recorder reads them, and launches from C.
#include <dlfcn.h>

#include <array>
#include <chrono>
#include <string>

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

// Launches `function` over and over.
extern "C" __attribute__((visibility("default"))) void launch_for(void* function, int milliseconds) {
  using Launch = int (*)(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void*, void**, void**);
  auto launch = reinterpret_cast<Launch>(dlsym(RTLD_DEFAULT, "cuLaunchKernel"));
  auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(milliseconds);
  while (launch && std::chrono::steady_clock::now() < end) launch(function, 1, 1, 1, 32, 1, 1, 0, nullptr, nullptr, nullptr);
}
