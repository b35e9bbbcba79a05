#include "inject/callback_memory.h"

#include <sys/mman.h>

#include <new>

namespace lamina {
namespace {

class MappedPages : public std::pmr::memory_resource {
  void* do_allocate(size_t bytes, size_t) override {
    void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) throw std::bad_alloc();
    return memory;
  }
  void do_deallocate(void* memory, size_t bytes, size_t) override { munmap(memory, bytes); }
  bool do_is_equal(const memory_resource& other) const noexcept override { return this == &other; }
};

}  // namespace

// Never destroyed: threads may end after the library's destructors.
std::pmr::memory_resource* mapped_pages() {
  static auto* pages = new MappedPages;
  return pages;
}

}  // namespace lamina
