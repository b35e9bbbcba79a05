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
#include "inject/context_cache.h"
#include "inject/phases.h"
#include "inject/record.h"

namespace lamina {

class Definitions;
class ThreadStacks;
struct StringEntry;

struct OpenRange {
  uint32_t context;
  uint32_t call;
  const StringEntry* name;
  uint32_t domain;
  int level;          // place among the open ranges of its domain, as nvtxRangePush returns it
  uint32_t step;      // opened by this range; 0: none
  uint32_t start_id;  // of nvtxRangeStart; 0: pushed
};

class ThreadLog {
 public:
  static constexpr size_t kMaxDepth = 256;
  static constexpr uint32_t kNoDomain = UINT32_MAX;

  static void* operator new(size_t bytes);
  static void operator delete(void* log) noexcept;
  ~ThreadLog();

  ThreadLog(uint32_t number, uint32_t tid, BlockPool& pool, const Steps& steps)
      : number_(number), tid_(tid), pool_(pool), process_step_(steps.current_step()), step_(&process_step_) {}

  // ---- the thread's own side

  uint32_t current_context() const { return top_->context; }

  // The hot path: a push or pop of which nothing is unusual, in the domain of the range it is in, the step noted, room
  // in the block. The caller is Busy, asks first, and has read the clock before all else.
  bool can_push(uint32_t domain) const {
    return top_->domain == domain && !unusual_ && step_->load(std::memory_order_relaxed) == noted_step_ && has_room(kTimedBytes);
  }
  int push(const StringEntry* name, uint32_t context, uint32_t domain, uint64_t now) {
    write_timed(format::RecordKind::kPush, 0, context, now);
    int level = top_->level + 1;
    *++top_ = {context, ++calls_, name, domain, level, 0, 0};
    if (top_ == open_ + kMaxDepth) [[unlikely]] unusual_ = true;
    return level;
  }
  bool can_pop(uint32_t domain) const {
    return top_->domain == domain && top_->step == 0 && !unusual_ && has_room(kTimedBytes);
  }
  int pop(uint64_t now) {
    write_timed(format::RecordKind::kPop, 0, static_cast<uint32_t>(top_ - open_) - 1, now);
    return top_--->level;
  }

  // Opens a range of the given context, pushed (start_id 0) or started. Returns null when the stack is full; the
  // pop of such a push is then counted off.
  OpenRange* open(const StringEntry* name, uint32_t context, uint32_t domain, uint32_t start_id, uint64_t now);
  // Takes over the ranges open on the same thread before a fork. Their steps are the parent's.
  void inherit(const ThreadLog& before);

  // Takes off a push that is not on the stack any more, and gives its level; -1 when there is none: one that found the
  // stack full, or one that was abandoned where nothing is open inside of its place.
  int pop_uncounted();
  // The pushed ranges from this place on are about to be closed, without the program having popped them.
  void abandon(size_t from);
  void close_at(size_t index, uint64_t now);
  std::span<OpenRange> open_ranges() { return {open_ + 1, depth()}; }
  bool has_start_end() const { return start_end_count_ > 0; }

  void mark(uint32_t string, uint64_t time);

  // Notes the step in the stream when it is not the one noted last. Comes before every push, launch and node.
  void sync_step() {
    uint32_t step = step_->load(std::memory_order_relaxed);
    if (step != noted_step_) [[unlikely]] note_step(step);
  }
  void set_own_step(OpenRange& range, uint32_t step);

  // Appends a record of fixed size. Without a buffer it is lost, and counted.
  template <typename Record>
  void append(format::RecordKind kind, uint8_t flags, uint32_t id, Record record) {
    const format::RecordHeader header{kind, flags, sizeof(Record) / 8, id};
    __builtin_memcpy(&record, &header, sizeof(header));
    if (!has_room(sizeof(Record)) && !next_block()) [[unlikely]] return;
    __builtin_memcpy(cursor_, &record, sizeof(Record));
    publish(sizeof(Record));
  }

  // The same for the records that are a header and a time.
  void append_timed(format::RecordKind kind, uint8_t flags, uint32_t id, uint64_t time) {
    if (has_room(kTimedBytes) || next_block()) [[likely]] write_timed(kind, flags, id, time);
  }

  // Whether the innermost range tells where kernels inside of it come from.
  bool in_op() const;

  // Notes the call stack of the record that comes next in the stream when it is not the one noted last.
  void sync_stack(uint32_t stack) {
    constexpr size_t kNextRecord = 32;  // it must stand in the same block
    if (!has_room(sizeof(format::CallStackRecord) + kNextRecord)) [[unlikely]] next_block();
    if (stack == noted_stack_) return;
    noted_stack_ = stack;
    append(format::RecordKind::kCallStack, 0, stack, format::CallStackRecord{});
  }

  // What CUPTI tells at the start of a driver call, for what happens inside of it.
  struct Call {
    const char* symbol = nullptr;  // the launched kernel's mangled name, if it is a launch
    bool captured = false;   // a graph node was created inside of the call
    bool collected = false;  // kernel activity was on when the call began
  } call;

  // Context and string look-ups this thread made before, by hash; a miss asks Definitions.
  struct StringCacheEntry {
    uint64_t hash = 0;
    uint32_t domain = 0;
    const StringEntry* entry = nullptr;
  };
  static constexpr size_t kStringCacheEntries = 512;
  StringCacheEntry string_cache[kStringCacheEntries];
  ContextCache context_cache;
  ThreadStacks* stacks = nullptr;

  // ---- the writer's side

  struct Piece {
    std::vector<char> records;
    uint32_t sequence;
  };
  // Moves what the thread has written since into `out`, a buffer's worth at a time; false when there is nothing.
  bool drain(Piece& out);
  // Whether the thread has ended and all of it is drained; gives its last block back then.
  bool finished();
  std::atomic<bool> ended{false};  // set by the thread, as the last it does
  uint64_t take_lost() { return lost_.exchange(0, std::memory_order_relaxed); }
  uint32_t number() const { return number_; }
  uint32_t tid() const { return tid_; }

  ThreadLog* next_log = nullptr;  // registry list

 private:
  static constexpr size_t kTimedBytes = 16;

  bool has_room(size_t size) const { return static_cast<size_t>(end_ - cursor_) >= size; }
  void write_timed(format::RecordKind kind, uint8_t flags, uint32_t id, uint64_t time) {
    uint64_t header = static_cast<uint64_t>(kind) | static_cast<uint64_t>(flags) << 8 | (kTimedBytes / 8) << 16 | static_cast<uint64_t>(id) << 32;
    __builtin_memcpy(cursor_, &header, sizeof(header));
    __builtin_memcpy(cursor_ + sizeof(header), &time, sizeof(time));
    publish(kTimedBytes);
  }
  void publish(size_t size) {
    cursor_ += size;
    block_->end.store(cursor_, std::memory_order_release);
  }
  [[gnu::cold]] bool next_block();
  void write_state();
  [[gnu::cold]] void note_step(uint32_t step);
  [[gnu::cold]] int next_level(uint32_t domain) const;
  void update_unusual();
  size_t depth() const { return static_cast<size_t>(top_ - open_); }
  void find_own_step();

  const uint32_t number_;
  const uint32_t tid_;
  BlockPool& pool_;
  const std::atomic<uint32_t>& process_step_;

  char* cursor_ = nullptr;
  char* end_ = nullptr;
  Block* block_ = nullptr;
  std::atomic<uint32_t> own_step_{0};  // of the innermost phase range open on this thread; only the thread uses it
  const std::atomic<uint32_t>* step_;  // own_step_ while there is one, else the process's
  uint32_t noted_step_ = format::kStartupStep;
  uint32_t noted_stack_ = 0;
  uint32_t calls_ = 0;
  size_t beyond_depth_ = 0;  // pushes that found the stack full and are still open
  size_t start_end_count_ = 0;
  size_t abandoned_ = 0;        // pushes that were closed for the program, whose pops may still come
  size_t abandoned_depth_ = 0;  // they stood at this place and further in
  bool unusual_ = false;        // the stack is full, has ranges of nvtxRangeStart, or pops may be owed
  // Below the outermost range lies one that is never closed, so that the hot path need not ask whether any is open.
  OpenRange open_[kMaxDepth + 1] = {{format::kRootContext, 0, nullptr, kNoDomain, -1, 0, 0}};
  OpenRange* top_ = open_;

  std::atomic<Block*> first_{nullptr};
  std::atomic<uint64_t> lost_{0};
  Block* drain_block_ = nullptr;
  uint32_t sequence_ = 0;
};

}  // namespace lamina
