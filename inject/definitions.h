// Interned strings and contexts, and everything else that is defined once for the process: one pending buffer of
// definition records that the writer drains before it writes what refers to them.
#pragma once

#include <cstdint>
#include <deque>
#include <mutex>
#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "inject/callback_memory.h"
#include "inject/options.h"
#include "inject/record.h"

namespace lamina {

// What opens a step.
struct StepOpening {
  uint32_t phase = 0;    // string id
  uint32_t message = 0;  // string id
  bool found = false;    // as in StringEntry
  bool collected = true;
};

// What a message means to the recorder, found once when it is interned.
struct StringEntry {
  uint32_t id = 0;
  uint32_t domain = 0;    // string id of the domain's name
  uint32_t phase = 0;     // string id of the phase that it opens; 0: none
  bool unique = false;    // can be open only once on a thread: a phase, a module's instance path
  bool is_op = false;     // tells by itself where the kernels inside of it come from: an op, or a call of an extension
  bool found = false;     // a phase that the PyTorch hook found by itself: one that the program names counts before it
  std::string_view text;  // valid for ever
};

class Definitions {
 public:
  // Limits hold memory flat in a program that makes up new names for ever; what is past them is counted.
  static constexpr size_t kMaxStrings = 1u << 20;
  static constexpr size_t kMaxTextBytes = 256u << 20;
  static constexpr size_t kMaxContexts = 1u << 20;

  explicit Definitions(const std::vector<PhasePattern>& phase_patterns) : phase_patterns_(phase_patterns) {}

  // The entry of a text in a domain (0: default); the same pointer for the same text, valid for ever. Text beyond
  // kMaxStringBytes is cut. Past kMaxStrings or kMaxTextBytes a new text is "(other)".
  const StringEntry* string(std::string_view text, uint32_t domain = 0);
  // The same for kernel names, which a program can not make up without end: they have no limit.
  const StringEntry* kernel_name(const char* name);

  std::string_view text(uint32_t id);

  // The context of a range with this name below `parent`; kOtherContext past kMaxContexts.
  uint32_t context(uint32_t parent, const StringEntry& name);

  void add_step(uint32_t step, const StepOpening& opening, uint64_t time);
  void end_step(uint32_t step, uint64_t time);
  void add_property(std::string_view key, std::string_view value);
  void add_thread(uint32_t number, uint32_t tid, std::string_view name);
  void add_clock_pair();
  void add_code(uint32_t place, const format::CodeRecord& record);
  void add_stack(uint32_t stack, const format::StackRecord& record);
  void add_loss(format::LossKind kind, uint64_t count);

  // The records that came since the last call; valid until the next. For one thread only, the writer.
  std::span<const char> drain();

  // Around fork(), so that no child inherits it locked.
  std::mutex& mutex() { return mutex_; }

 private:
  struct Key {
    std::string_view text;
    uint32_t domain;
    bool operator==(const Key&) const = default;
  };
  struct KeyHash {
    size_t operator()(const Key& key) const { return std::hash<std::string_view>()(key.text) * 31 + key.domain; }
  };

  const StringEntry* find_or_add(std::string_view text, uint32_t domain, bool limited);
  const StringEntry* new_string(std::string_view text, uint32_t domain, bool cut);
  void classify(StringEntry& entry);
  template <typename Record>
  void append(format::RecordKind kind, uint32_t id, Record record, uint8_t flags = 0, std::string_view text = {});

  std::mutex mutex_;
  const std::vector<PhasePattern>& phase_patterns_;
  CallbackMemory memory_;
  std::pmr::deque<StringEntry> strings_{&memory_};
  std::pmr::unordered_map<Key, const StringEntry*, KeyHash> string_ids_{&memory_};
  std::pmr::unordered_map<uint64_t, uint32_t> context_ids_{&memory_};  // parent << 32 | name
  const StringEntry* other_ = nullptr;  // stands for all texts past the limit
  uint64_t lost_strings_ = 0;
  size_t text_bytes_ = 0;
  uint64_t lost_contexts_ = 0;
  std::pmr::vector<char> pending_{&memory_};
  std::pmr::vector<char> drained_{&memory_};
};

}  // namespace lamina
