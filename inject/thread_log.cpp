#include "inject/thread_log.h"

#include "inject/callback_memory.h"
#include "inject/definitions.h"
#include "inject/thread_stacks.h"

namespace lamina {

using namespace format;

void* ThreadLog::operator new(size_t bytes) { return mapped_pages()->allocate(bytes); }

void ThreadLog::operator delete(void* log) noexcept { mapped_pages()->deallocate(log, sizeof(ThreadLog)); }

ThreadLog::~ThreadLog() { delete stacks; }

bool ThreadLog::in_op() const { return top_->name && top_->name->is_op; }

int ThreadLog::next_level(uint32_t domain) const {
  for (const OpenRange* range = top_; range != open_; --range) {
    if (range->domain == domain && range->start_id == 0) return range->level + 1;
  }
  return 0;
}

void ThreadLog::update_unusual() {
  unusual_ = depth() == kMaxDepth || beyond_depth_ > 0 || start_end_count_ > 0 || abandoned_ > 0;
}

OpenRange* ThreadLog::open(const StringEntry* name, uint32_t context, uint32_t domain, uint32_t start_id, uint64_t now) {
  if (depth() == kMaxDepth) {
    if (start_id == 0) ++beyond_depth_;
    return nullptr;
  }
  int level = next_level(domain);
  // The record first: should it begin a new block, the state at its head must not hold this range yet. So with pops.
  append_timed(RecordKind::kPush, start_id != 0 ? kPushStartEnd : 0, context, now);
  if (start_id != 0) ++start_end_count_;
  *++top_ = {context, ++calls_, name, domain, level, 0, start_id};
  update_unusual();
  return top_;
}

int ThreadLog::pop_uncounted() {
  if (beyond_depth_ > 0) return static_cast<int>(kMaxDepth + --beyond_depth_);
  if (abandoned_ == 0 || depth() > abandoned_depth_) return -1;
  int level = static_cast<int>(abandoned_depth_ + --abandoned_);
  update_unusual();
  return level;
}

void ThreadLog::abandon(size_t from) {
  for (size_t i = from; i < depth(); ++i) abandoned_ += open_ranges()[i].start_id == 0;
  abandoned_ += beyond_depth_;
  beyond_depth_ = 0;
  abandoned_depth_ = from;
  update_unusual();
}

// Ranges inside of the closed one stay open in their place: domains and start/end ranges may overlap.
void ThreadLog::close_at(size_t index, uint64_t now) {
  append_timed(RecordKind::kPop, 0, static_cast<uint32_t>(index), now);
  OpenRange* closed = open_ + 1 + index;
  bool had_step = closed->step != 0;
  if (closed->start_id != 0) --start_end_count_;
  for (OpenRange* range = closed; range != top_; ++range) *range = range[1];
  --top_;
  if (had_step) find_own_step();
  update_unusual();
}

void ThreadLog::inherit(const ThreadLog& before) {
  top_ = open_ + before.depth();
  calls_ = before.calls_;
  beyond_depth_ = before.beyond_depth_;
  start_end_count_ = before.start_end_count_;
  for (size_t i = 1; i <= depth(); ++i) {
    open_[i] = before.open_[i];
    open_[i].step = 0;
  }
  update_unusual();
}

void ThreadLog::set_own_step(OpenRange& range, uint32_t step) {
  range.step = step;
  find_own_step();
}

void ThreadLog::find_own_step() {
  uint32_t step = 0;
  for (const OpenRange& range : open_ranges()) {
    if (range.step != 0) step = range.step;
  }
  own_step_.store(step, std::memory_order_relaxed);
  step_ = step != 0 ? &own_step_ : &process_step_;
}

void ThreadLog::mark(uint32_t string, uint64_t time) { append_timed(RecordKind::kMark, 0, string, time); }

void ThreadLog::note_step(uint32_t step) {
  noted_step_ = step;
  append(RecordKind::kStepChange, 0, step, StepChangeRecord{});
}

bool ThreadLog::next_block() {
  Block* block = pool_.take();
  if (!block) {
    end_ = cursor_;  // no smaller record may slip in: what follows a loss begins with the state
    lost_.fetch_add(1, std::memory_order_relaxed);
    return false;
  }
  Block* full = block_;
  block_ = block;
  cursor_ = block->data;
  end_ = block->data + Block::kCapacity;
  write_state();
  noted_stack_ = 0;
  if (full) {
    full->next.store(block, std::memory_order_release);
  } else {
    first_.store(block, std::memory_order_release);
  }
  return true;
}

// Fits into an empty block: kMaxDepth open calls are 2 KB.
void ThreadLog::write_state() {
  ThreadStateRecord state{{}, noted_step_, calls_};
  size_t size = sizeof(state) + depth() * sizeof(OpenCall);
  state.header = {RecordKind::kThreadState, 0, static_cast<uint16_t>(size / 8), static_cast<uint32_t>(depth())};
  __builtin_memcpy(cursor_, &state, sizeof(state));
  for (size_t i = 0; i < depth(); ++i) {
    OpenCall open{open_[i + 1].context, open_[i + 1].call};
    __builtin_memcpy(cursor_ + sizeof(state) + i * sizeof(open), &open, sizeof(open));
  }
  publish(size);
}

bool ThreadLog::drain(Piece& out) {
  if (!drain_block_) drain_block_ = first_.load(std::memory_order_acquire);
  if (!drain_block_) return false;
  for (;;) {
    // `next` first: once it is set, `end` has its last value.
    Block* next = drain_block_->next.load(std::memory_order_acquire);
    char* end = drain_block_->end.load(std::memory_order_acquire);
    if (end > drain_block_->drained) {
      out.records.assign(drain_block_->drained, end);
      out.sequence = sequence_++;
      drain_block_->drained = end;
      return true;
    }
    if (!next) return false;
    pool_.give_back(drain_block_);
    drain_block_ = next;
  }
}

bool ThreadLog::finished() {
  if (!ended.load(std::memory_order_acquire)) return false;
  if (!drain_block_) drain_block_ = first_.load(std::memory_order_acquire);
  if (!drain_block_) return true;
  if (drain_block_->next.load() || drain_block_->end.load() != drain_block_->drained) return false;
  pool_.give_back(drain_block_);
  return true;
}

}  // namespace lamina
