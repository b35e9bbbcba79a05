// One host thread's stream of records and its stack of open ranges. The thread appends without lock, allocation or
// system call; the writer drains.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "inject/block_pool.h"
#include "inject/clock.h"
#include "inject/phases.h"
#include "inject/record.h"

namespace lamina {

class Definitions;
struct StringEntry;

struct OpenRange {
  uint32_t context;
  uint32_t call;
  const StringEntry* name;
  uint32_t domain;
  int level;        // place among the open ranges of its domain, as nvtxRangePush returns it
  uint32_t step;    // opened by this range; 0: none
  uint64_t start_id;  // of nvtxRangeStart; 0: pushed
};

class ThreadLog {
 public:
  static constexpr size_t kMaxDepth = 256;

  ThreadLog(uint32_t number, uint32_t tid, BlockPool& pool, const Steps& steps)
      : number_(number), tid_(tid), pool_(pool), steps_(steps) {}

  // ---- the thread's own side

  uint32_t current_context() const { return depth_ > 0 ? open_[depth_ - 1].context : format::kRootContext; }

  // Opens a range of the given context, pushed (start_id 0) or started. Returns null when the stack is full; the
  // pop of such a push is then counted off.
  OpenRange* open(const StringEntry* name, uint32_t context, uint32_t domain, uint64_t start_id);
  // Takes over the ranges open on the same thread before a fork. Their steps are the parent's.
  void inherit(const ThreadLog& before);

  // Takes off one of the pushes that found the stack full, and gives its level; -1 when there are none.
  int pop_beyond_depth();
  void forget_beyond_depth() { beyond_depth_ = 0; }
  void close_at(size_t index);
  std::span<OpenRange> open_ranges() { return {open_, depth_}; }
  bool has_start_end() const { return start_end_count_ > 0; }

  void mark(uint32_t string, uint64_t time);

  // Notes the step in the stream when it is not the one noted last. Comes before every push, launch and node.
  void sync_step() {
    uint32_t step = own_step_ != 0 ? own_step_ : steps_.current();
    if (step != noted_step_) [[unlikely]] note_step(step);
  }
  void set_own_step(OpenRange& range, uint32_t step);

  // Appends a record of fixed size. False when there was no buffer: the loss is counted.
  template <typename Record>
  bool append(format::RecordKind kind, uint8_t flags, uint32_t id, Record record) {
    const format::RecordHeader header{kind, flags, sizeof(Record) / 8, id};
    __builtin_memcpy(&record, &header, sizeof(header));
    char* place = reserve(sizeof(Record));
    if (!place) [[unlikely]] return false;
    __builtin_memcpy(place, &record, sizeof(Record));
    publish();
    return true;
  }

  // What CUPTI tells at the start of a driver call, for what happens inside of it.
  struct Call {
    const char* symbol = nullptr;  // the launched kernel's mangled name, if it is a launch
    bool captured = false;   // a graph node was created inside of the call
    bool collected = false;  // kernel activity was on when the call began
  } call;

  // Context and string look-ups this thread made before, by hash; a miss asks Definitions.
  struct ContextCacheEntry {
    uint32_t parent = 0, name = 0, context = 0;
  };
  struct StringCacheEntry {
    uint64_t hash = 0;
    uint32_t domain = 0;
    const StringEntry* entry = nullptr;
  };
  static constexpr size_t kCacheEntries = 512;
  ContextCacheEntry context_cache[kCacheEntries];
  StringCacheEntry string_cache[kCacheEntries];

  // ---- the writer's side

  struct Piece {
    std::vector<char> records;
    uint32_t sequence;
  };
  // Moves what the thread has written since into `out`, a buffer's worth at a time; false when there is nothing.
  bool drain(Piece& out);
  uint64_t take_lost() { return lost_.exchange(0, std::memory_order_relaxed); }
  uint32_t number() const { return number_; }
  uint32_t tid() const { return tid_; }

  ThreadLog* next_log = nullptr;  // registry list

 private:
  char* reserve(size_t size) {
    if (static_cast<size_t>(end_ - cursor_) < size) [[unlikely]] {
      if (!next_block()) return nullptr;
    }
    char* place = cursor_;
    cursor_ += size;
    return place;
  }
  void publish() { block_->used.store(static_cast<uint32_t>(cursor_ - block_->data), std::memory_order_release); }
  bool next_block();
  void write_state();
  void note_step(uint32_t step);
  void find_own_step();

  const uint32_t number_;
  const uint32_t tid_;
  BlockPool& pool_;
  const Steps& steps_;

  char* cursor_ = nullptr;
  char* end_ = nullptr;
  Block* block_ = nullptr;
  uint32_t own_step_ = 0;  // of the innermost phase range open on this thread
  uint32_t noted_step_ = format::kStartupStep;
  uint32_t calls_ = 0;
  size_t depth_ = 0;
  size_t beyond_depth_ = 0;  // pushes that found the stack full and are still open
  size_t start_end_count_ = 0;
  OpenRange open_[kMaxDepth];

  std::atomic<Block*> first_{nullptr};
  std::atomic<uint64_t> lost_{0};
  Block* drain_block_ = nullptr;
  uint32_t sequence_ = 0;
};

}  // namespace lamina
