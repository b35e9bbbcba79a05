#include "inject/thread_log.h"

#include <algorithm>

#include "inject/definitions.h"

namespace lamina {

using namespace format;

OpenRange* ThreadLog::open(const StringEntry* name, uint32_t context, uint32_t domain, uint64_t start_id) {
  if (depth_ == kMaxDepth) {
    if (start_id == 0) ++beyond_depth_;
    return nullptr;
  }
  int level = 0;
  for (size_t i = depth_; i-- > 0;) {
    if (open_[i].domain == domain && open_[i].start_id == 0) {
      level = open_[i].level + 1;
      break;
    }
  }
  // The record first: should it begin a new block, the state at its head must not hold this range yet.
  append(RecordKind::kPush, start_id != 0 ? kPushStartEnd : 0, context, PushRecord{{}, host_now()});
  if (start_id != 0) ++start_end_count_;
  OpenRange& range = open_[depth_++];
  range = {context, ++calls_, name, domain, level, 0, start_id};
  return &range;
}

int ThreadLog::pop_beyond_depth() {
  if (beyond_depth_ == 0) return -1;
  return static_cast<int>(kMaxDepth + --beyond_depth_);
}

// Ranges inside of the closed one stay open in their place: domains and start/end ranges may overlap.
void ThreadLog::close_at(size_t index) {
  append(RecordKind::kPop, 0, static_cast<uint32_t>(index), PopRecord{{}, host_now()});
  bool had_step = open_[index].step != 0;
  if (open_[index].start_id != 0) --start_end_count_;
  std::copy(open_ + index + 1, open_ + depth_, open_ + index);
  --depth_;
  if (had_step) find_own_step();
}

void ThreadLog::inherit(const ThreadLog& before) {
  depth_ = before.depth_;
  calls_ = before.calls_;
  beyond_depth_ = before.beyond_depth_;
  start_end_count_ = before.start_end_count_;
  for (size_t i = 0; i < depth_; ++i) {
    open_[i] = before.open_[i];
    open_[i].step = 0;
  }
}

void ThreadLog::set_own_step(OpenRange& range, uint32_t step) {
  range.step = step;
  find_own_step();
}

void ThreadLog::find_own_step() {
  own_step_ = 0;
  for (size_t i = 0; i < depth_; ++i) {
    if (open_[i].step != 0) own_step_ = open_[i].step;
  }
}

void ThreadLog::mark(uint32_t string, uint64_t time) { append(RecordKind::kMark, 0, string, MarkRecord{{}, time}); }

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
  size_t size = sizeof(state) + depth_ * sizeof(OpenCall);
  state.header = {RecordKind::kThreadState, 0, static_cast<uint16_t>(size / 8), static_cast<uint32_t>(depth_)};
  __builtin_memcpy(cursor_, &state, sizeof(state));
  cursor_ += sizeof(state);
  for (size_t i = 0; i < depth_; ++i) {
    OpenCall open{open_[i].context, open_[i].call};
    __builtin_memcpy(cursor_, &open, sizeof(open));
    cursor_ += sizeof(open);
  }
  publish();
}

bool ThreadLog::drain(Piece& out) {
  if (!drain_block_) drain_block_ = first_.load(std::memory_order_acquire);
  if (!drain_block_) return false;
  for (;;) {
    // `next` first: once it is set, `used` has its last value.
    Block* next = drain_block_->next.load(std::memory_order_acquire);
    uint32_t used = drain_block_->used.load(std::memory_order_acquire);
    if (used > drain_block_->drained) {
      out.records.assign(drain_block_->data + drain_block_->drained, drain_block_->data + used);
      out.sequence = sequence_++;
      drain_block_->drained = used;
      return true;
    }
    if (!next) return false;
    pool_.give_back(drain_block_);
    drain_block_ = next;
  }
}

}  // namespace lamina
