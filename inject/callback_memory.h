// Memory of what the program's threads keep while they are in a callback: from mmap, never from malloc. The program may be
// inside of malloc when a signal handler of its own makes an NVTX call, and may have replaced malloc by anything.
#pragma once

#include <cstddef>
#include <memory_resource>

namespace lamina {

// Whole pages for each request; throws std::bad_alloc when the system has none.
std::pmr::memory_resource* mapped_pages();

// A pool on such pages, for containers. Not locked: it is used under the mutex that guards them.
class CallbackMemory : public std::pmr::unsynchronized_pool_resource {
 public:
  CallbackMemory() : unsynchronized_pool_resource(mapped_pages()) {}
};

}  // namespace lamina
