// The call stacks of the process: a tree of frames, each a place in the code. Where that is in words is found by the writer,
// while the process has its libraries.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "inject/callback_memory.h"
#include "inject/definitions.h"
#include "inject/known_callers.h"
#include "inject/loaded_modules.h"
#include "inject/python_end.h"
#include "inject/python_frames.h"
#include "inject/symbolizer.h"
#include "inject/unwinder.h"

namespace lamina {

class Stacks {
 public:
  static constexpr size_t kMaxFrames = 256;  // of one stack; what is further out is left away
  static constexpr size_t kMaxPythonFrames = 256;
  static constexpr size_t kMaxNodes = 1u << 18;
  static constexpr size_t kMaxPlaces = 1u << 17;

  explicit Stacks(Definitions& definitions) : definitions_(definitions) {}

  // False, with a line that says so, if there is nothing to unwind with.
  bool open();
  bool on() const { return on_; }

  // The stack of the calling thread from the return address at `first` on, unwound and made known. Gives its id and the
  // frames; 0 past the limits. `known`: the thread's.
  uint32_t unwind(const uintptr_t* first, KnownCallers& known, std::span<SavedReturn> frames, size_t* count);

  // The same stack with the Python functions that run in it, innermost first, and what it launches: the mangled name of a
  // kernel, null if not known. `native`: its id, with these frames.
  uint32_t complete(uint32_t native, std::span<const SavedReturn> frames, std::span<const PythonFrame> python, const char* kernel);

  // Whether Python functions may run in the stack.
  bool runs_python(std::span<const SavedReturn> frames);
  // A launch has no stack because of the limits.
  void lose() { lost_.fetch_add(1, std::memory_order_relaxed); }

  // Around the use of what read_python() gives, which is of the calling thread.
  PythonEnd& python_end() { return python_end_; }
  size_t read_python(std::span<PythonFrame> frames) { return python_.read(frames); }

  // Addresses may stand for other code from now on: a library has gone.
  void forget_addresses() { generation_.fetch_add(1, std::memory_order_relaxed); }
  uint32_t generation() const { return generation_.load(std::memory_order_relaxed); }

  // For the writer: takes the places that came since; false if there are none. Then gives them names, as definitions,
  // which takes long where a library has many symbols.
  bool take_new_places();
  void describe_places();

  // How often a stack had to be unwound, and how long that took: a median and the 99th of a hundred, in us, to a power of two.
  struct Cost {
    uint64_t count = 0;
    uint64_t median_us = 0;
    uint64_t slow_us = 0;
  };
  Cost cost() const;

  std::mutex& mutex() { return mutex_; }  // around fork()

 private:
  struct Place {
    uint32_t id;
    uint32_t module;  // string id of its path; 0: none
    uint32_t build_id;
    std::string_view path;  // as the modules keep it
    uint64_t offset;  // vaddr in the module, or the address
  };

  bool find_python();
  void notice_unloads();
  uint32_t make_known(const SavedReturn* frames, const Unwinder::Unwound& unwound, KnownCallers& known);
  std::span<const SavedReturn> without_stale(std::span<const SavedReturn> frames, std::span<const PythonFrame> python) const;
  uint32_t with_python(std::span<const SavedReturn> frames, std::span<const PythonFrame> python);
  uint32_t place_of(uintptr_t return_address);
  uint32_t place_of(const PythonFrame& frame);
  uint32_t node_of(uint32_t parent, uint32_t place);
  uint32_t leaf_of(uint32_t node, uint32_t kernel);
  uint32_t new_node(std::pmr::unordered_map<uint64_t, uint32_t>& ids, uint64_t key, const format::StackRecord& record);
  void describe(const Place& place);

  Definitions& definitions_;
  Unwinder unwinder_;
  PythonFrames python_;
  PythonEnd python_end_;
  Symbolizer symbolizer_;  // the writer's own
  bool on_ = false;
  std::array<std::atomic<uint64_t>, 32> durations_{};  // how many took less than 2^i us
  std::atomic<uint32_t> generation_{0};

  std::mutex mutex_;
  CallbackMemory memory_;
  LoadedModules modules_{&memory_};
  uint64_t known_unloads_ = 0;
  std::pmr::unordered_map<uintptr_t, uint32_t> places_{&memory_};  // by return address
  std::pmr::unordered_map<uint64_t, uint32_t> python_places_{&memory_};  // by PythonFrame::hash
  std::pmr::unordered_map<uint64_t, uint32_t> nodes_{&memory_};    // parent << 32 | place
  std::pmr::unordered_map<uint64_t, uint32_t> leaves_{&memory_};   // node << 32 | kernel
  std::pmr::vector<Place> new_places_{&memory_};
  std::vector<Place> described_;  // the writer's own; no local one, which a fork would leave without an owner
  uint32_t place_count_ = 0;
  uint32_t node_count_ = 0;
  std::atomic<uint64_t> lost_{0};  // launches without their stack
};

}  // namespace lamina
