#include "report/records/read_ahead.h"

namespace lamina {

ReadAhead::ReadAhead(ProfileFile& file) : file_(file), thread_([this] { read(); }) {}

ReadAhead::~ReadAhead() {
  {
    std::lock_guard lock(mutex_);
    abandoned_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

const Chunk* ReadAhead::next() {
  std::unique_lock lock(mutex_);
  ++given_;
  changed_.notify_all();
  changed_.wait(lock, [&] { return read_ >= given_ || at_end_; });
  if (read_ >= given_) return &chunks_[(given_ - 1) % kChunks];
  lock.unlock();
  if (thread_.joinable()) thread_.join();
  if (problem_) std::rethrow_exception(problem_);
  return nullptr;
}

// Fills all chunks but the one that next() gave last.
void ReadAhead::read() {
  bool more = true;
  try {
    while (more) {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return abandoned_ || read_ < given_ + kChunks - 1; });
      if (abandoned_) return;
      Chunk& chunk = chunks_[read_ % kChunks];
      lock.unlock();
      more = file_.next(chunk);
      lock.lock();
      read_ += more;
      at_end_ = !more;
      changed_.notify_all();
    }
  } catch (...) {
    std::lock_guard lock(mutex_);
    problem_ = std::current_exception();
    at_end_ = true;
    changed_.notify_all();
  }
}

}  // namespace lamina
