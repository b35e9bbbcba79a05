// Python's frames as the recorder reads them, for interpreters_test.py.
#include <array>
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
    text += frame.called_from_c ? ">" : "";
    text.append(reader.function(frame, function)).append("|").append(reader.file(frame, file));
    text.append("|").append(std::to_string(reader.line(frame))).append("\n");
  }
  return text.c_str();
}
