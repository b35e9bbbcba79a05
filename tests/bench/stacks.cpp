// What a call stack costs, known or new, beside libunwind's own walks of it: bench_stacks ROUNDS. The rows take turns,
// a sample each, all from the same functions; a new stack is one whose frames lie where they never lay.
#include "inject/stacks.h"

#include <alloca.h>
#include <dlfcn.h>
#include <ucontext.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <vector>

#include "inject/clock.h"
#include "inject/definitions.h"
#include "inject/thread_stacks.h"

namespace lamina {
namespace {

constexpr int kDepth = 60;
constexpr int kInnerDepth = 10;
constexpr size_t kMaxFrames = 256;

struct Row {
  const char* name;
  bool new_inner_places, new_places;
  void (*work)(Row& row, const uintptr_t* first);
  std::unique_ptr<ThreadStacks> thread = std::make_unique<ThreadStacks>();
  std::vector<uint64_t> samples = {};
};

// ---- what is measured

Stacks* stacks;

void find(Row& row, const uintptr_t* first) {
  if (row.thread->find(*stacks, first, nullptr) == 0) abort();
}

template <typename Function>
Function of_libunwind(const char* name) {
  static void* library = dlopen("libunwind.so.8", RTLD_NOW);
  auto function = library ? reinterpret_cast<Function>(dlsym(library, name)) : nullptr;
  if (!function) {
    fprintf(stderr, "bench_stacks: no %s in libunwind.so.8\n", name);
    exit(1);
  }
  return function;
}

size_t frames_of_walk;

[[gnu::noinline]] void walk(Row&, const uintptr_t*) {
  static auto get_context = of_libunwind<int (*)(void*)>("_Ux86_64_getcontext");
  static auto init_local = of_libunwind<int (*)(void*, void*)>("_ULx86_64_init_local");
  static auto step = of_libunwind<int (*)(void*)>("_ULx86_64_step");
  static auto get_register = of_libunwind<int (*)(void*, int, uintptr_t*)>("_ULx86_64_get_reg");
  constexpr int kInstructionPointer = 16;
  ucontext_t context;
  uintptr_t cursor[127];
  uintptr_t addresses[kMaxFrames];
  get_context(&context);
  init_local(cursor, &context);
  size_t count = 0;
  while (count < kMaxFrames && step(cursor) > 0) get_register(cursor, kInstructionPointer, &addresses[count++]);
  frames_of_walk = count;
}

[[gnu::noinline]] void backtrace(Row&, const uintptr_t*) {
  static auto unw_backtrace = of_libunwind<int (*)(void**, int)>("unw_backtrace");
  void* addresses[kMaxFrames];
  if (unw_backtrace(addresses, kMaxFrames) < kDepth) abort();
}

void nothing(Row&, const uintptr_t*) {}

// ---- the stack

[[gnu::noinline]] void sample(Row& row) {
  const uintptr_t* first = LAMINA_SAVED_RETURN();
  uint64_t begin = host_now();
  row.work(row, first);
  row.samples.push_back(host_now() - begin);
}

template <int depth>
[[gnu::noinline]] void nested(Row& row) {
  if constexpr (depth == kDepth || depth == kInnerDepth) {
    // Moves the frames of what it calls.
    bool moves = depth == kDepth ? row.new_places : row.new_inner_places;
    size_t bytes = 16 * (moves ? row.samples.size() + 1 : 1);
    void* place = alloca(bytes);
    asm volatile("" ::"r"(place) : "memory");
  }
  if constexpr (depth > 1) {
    nested<depth - 1>(row);
  } else {
    sample(row);
  }
  asm volatile("" ::: "memory");  // no jump instead of the call
}

void print(Row& row) {
  std::vector<uint64_t>& samples = row.samples;
  std::sort(samples.begin(), samples.end());
  printf("%-52s %8lu %8lu\n", row.name, samples[samples.size() / 2], samples[samples.size() * 99 / 100]);
}

int run(size_t rounds) {
  std::vector<PhasePattern> no_patterns;
  Definitions definitions(no_patterns);
  Stacks of_process(definitions);
  stacks = &of_process;
  if (!of_process.open()) return 1;
  Row rows[] = {
      {"the clock alone", false, false, nothing},
      {"known stack", false, false, find},
      {"new stack, the innermost 10 frames differ", true, false, find},
      {"new stack, all frames differ", false, true, find},
      {"libunwind alone, steps", false, true, walk},
      {"libunwind alone, unw_backtrace, at known places", false, false, backtrace},
      {"libunwind alone, unw_backtrace, at new places", false, true, backtrace},
  };
  for (size_t i = 0; i < rounds; ++i) {
    for (Row& row : rows) nested<kDepth>(row);
  }
  printf("a stack of %zu frames, %zu samples of each, in ns %12s %8s\n", frames_of_walk, rounds, "median", "p99");
  for (Row& row : rows) print(row);
  return 0;
}

}  // namespace
}  // namespace lamina

int main(int argc, char** argv) {
  long rounds = argc > 1 ? atol(argv[1]) : 5000;
  return lamina::run(static_cast<size_t>(std::clamp(rounds, 1L, 100'000L)));
}
