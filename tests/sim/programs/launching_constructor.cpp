// A library that waits, while it is being loaded, for another thread that launches.
#include <thread>

#include "sim_program.h"

namespace {

[[gnu::noinline]] void in_constructor() {
  launch_only("loading");
  asm volatile("" ::: "memory");
}

struct Loaded {
  Loaded() { std::thread(in_constructor).join(); }
} loaded;

}  // namespace
