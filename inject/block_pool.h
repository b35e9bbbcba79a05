// Fixed blocks of memory for the threads' streams, from a pool with a cap.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <vector>

namespace lamina {

// One thread appends, the writer reads what lies before `end`. Neither waits for the other.
struct Block {
  static constexpr size_t kBytes = 64u << 10;
  static constexpr size_t kCapacity = kBytes - 32;

  std::atomic<Block*> next{nullptr};  // set once, when the thread has gone on to another block
  std::atomic<char*> end{data};       // of the whole records
  char* drained = data;               // the writer's: what lies before is written
  uint64_t reserved = 0;
  alignas(8) char data[kCapacity];
};
static_assert(sizeof(Block) == Block::kBytes);

class BlockPool {
 public:
  explicit BlockPool(size_t max_bytes) : max_blocks_(max_bytes / Block::kBytes) {}

  // An empty block, or null when the cap is reached or memory is out. Blocks come from mmap, not from malloc, which
  // the program may have replaced or be inside of.
  Block* take();
  // Called, outside of the lock, when a block is taken and less than half of the cap is left: time to drain.
  std::function<void()> on_low;
  void give_back(Block* block);
  size_t free_blocks();

  std::mutex& mutex() { return mutex_; }

 private:
  bool grow();  // the caller holds the mutex

  std::mutex mutex_;
  Block* free_ = nullptr;  // linked by next
  size_t free_count_ = 0;
  size_t blocks_ = 0;
  size_t max_blocks_;
};

}  // namespace lamina
