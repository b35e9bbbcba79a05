// The Python frames of the calling thread, read where CPython (3.10 to 3.13) keeps them. Nothing of Python's is called that
// needs the GIL, which a launch may not hold: a thread's frames, and the code that they keep alive, change only while that
// thread runs Python, or when Python ends (python_end.h).
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace lamina {

// A Python function at the instruction that it is at.
struct PythonFrame {
  const void* code;
  const void* name;     // of the code, as its file
  const void* file;
  uint64_t hash;        // of all that it says: other code may come to lie at its address, and another name at its name's
  uint32_t offset;      // of the instruction in its code, in bytes
  // What C has called: a place in the native frame that it is evaluated in. Null: that of the frame around it.
  const void* anchor;

  static uint64_t mix(uint64_t value) {
    value *= 0x9e3779b97f4a7c15;
    return value ^ value >> 32;
  }
};

class PythonFrames {
 public:
  // Looks for the process's interpreter: it may come after the recorder. True when it was just found. Takes the lock of the
  // dynamic loader, which a thread may hold that waits for a launch of another: not for use in callbacks.
  bool find_interpreter();

  // This thread's frames, innermost first, as many as fit; gives how many. 0 without an interpreter that is known, and for
  // threads that run no Python.
  size_t read(std::span<PythonFrame> frames);

  // Whether there is one, and it is known.
  bool has_interpreter() const { return state_.load(std::memory_order_acquire) >= State::kUnchecked; }

  // Some address in the interpreter's code.
  uintptr_t code_address() const { return reinterpret_cast<uintptr_t>(this_thread_state_); }
  // Whether a frame evaluates Python functions. Not all of them are known: compilers put some of its code elsewhere.
  bool is_evaluation(uintptr_t return_address) const { return return_address - evaluation_begin_ < evaluation_size_; }

  // Of a frame that is open on the calling thread, in UTF-8, cut to `room`. The function's name is qualified
  // (`Attention.forward`) since Python 3.11.
  std::string_view function(const PythonFrame& frame, std::span<char> room) const { return text_of(frame.name, room); }
  std::string_view file(const PythonFrame& frame, std::span<char> room) const { return text_of(frame.file, room); }
  uint32_t line(const PythonFrame& frame) const;  // 0: not known

 private:
  // Offsets in bytes in an unmodified CPython for 64 bit, from its headers (pystate.h, pycore_frame.h, code.h).
  struct Layout {
    int minor;
    size_t thread_frames;  // in PyThreadState: the innermost frame, or what points to it
    size_t innermost;      // in what points to it; kDirect
    size_t code, previous, instruction;  // in a frame
    size_t owner;                        // who the frame belongs to, or that C called it
    size_t instructions;                 // in the code: the first of them
    size_t characters;                   // in a string of ASCII
    size_t anchors, next_anchor;         // in PyThreadState: the CFrame of the innermost evaluation; in that: the one around it
  };
  static constexpr size_t kDirect = ~size_t{0};
  static const Layout kLayouts[];

  enum class State : uint8_t { kUnknown, kUnusable, kUnchecked, kKnown };

  const std::byte* innermost(const std::byte* thread) const;
  void read_frame(const std::byte* frame, PythonFrame* found) const;
  bool skips(const std::byte* frame) const;
  const void* anchor_of(const std::byte* frame, const std::byte* cframe) const;
  bool check(const std::byte* thread) const;
  void look_for_interpreter();
  bool is_string(const void* object) const;
  uint64_t hash_of(const void* string) const;
  size_t member_offset(const char* name) const;
  std::string_view text_of(const void* string, std::span<char> room) const;

  const Layout* layout_ = nullptr;
  std::atomic<State> state_{State::kUnknown};
  void* (*this_thread_state_)() = nullptr;
  int (*line_of_)(const void* code, int offset) = nullptr;
  long (*length_)(const void* string) = nullptr;
  uint32_t (*character_)(const void* string, long at) = nullptr;
  const std::byte* code_type_ = nullptr;
  unsigned long (*type_flags_)(const void* type) = nullptr;
  int (*is_finalizing_)() = nullptr;
  size_t name_ = 0, file_ = 0, first_line_ = 0, lines_ = 0;  // in a code object
  uintptr_t evaluation_begin_ = 0, evaluation_size_ = 0;
};

}  // namespace lamina
