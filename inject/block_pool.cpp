#include "inject/block_pool.h"

#include <sys/mman.h>

#include <algorithm>
#include <new>

namespace lamina {
namespace {

constexpr size_t kBlocksPerMapping = 16;

}  // namespace

bool BlockPool::grow() {
  size_t count = std::min(kBlocksPerMapping, max_blocks_ - blocks_);
  if (count == 0) return false;
  void* memory = mmap(nullptr, count * Block::kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return false;
  for (size_t i = 0; i < count; ++i) {
    Block* block = new (static_cast<char*>(memory) + i * Block::kBytes) Block;
    block->next.store(free_, std::memory_order_relaxed);
    free_ = block;
  }
  blocks_ += count;
  free_count_ += count;
  return true;
}

Block* BlockPool::take() {
  std::unique_lock lock(mutex_);
  bool found = free_ || grow();
  bool low = (free_count_ + max_blocks_ - blocks_) * 2 < max_blocks_;
  if (!found || low) {
    lock.unlock();
    if (on_low) on_low();
    lock.lock();
  }
  if (!free_ && !grow()) return nullptr;
  Block* block = free_;
  free_ = block->next.load(std::memory_order_relaxed);
  --free_count_;
  block->next.store(nullptr, std::memory_order_relaxed);
  block->end.store(block->data, std::memory_order_relaxed);
  block->drained = block->data;
  return block;
}

void BlockPool::give_back(Block* block) {
  std::lock_guard lock(mutex_);
  block->next.store(free_, std::memory_order_relaxed);
  free_ = block;
  ++free_count_;
}

size_t BlockPool::free_blocks() {
  std::lock_guard lock(mutex_);
  return free_count_;
}

}  // namespace lamina
