// Call stacks: the cache that proves a stack is a known one, and the unwinder on the stack of this program.
#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "inject/stack_cache.h"
#include "inject/unwinder.h"

namespace lamina {
namespace {

// A stack in memory of its own: return addresses at the given places, innermost first.
class FakeStack {
 public:
  std::vector<SavedReturn> set(const std::vector<std::pair<size_t, uintptr_t>>& frames) {
    std::vector<SavedReturn> saved;
    for (auto [place, address] : frames) {
      words_[place] = address;
      saved.push_back({&words_[place], address});
    }
    return saved;
  }
  const uintptr_t* at(size_t place) const { return &words_[place]; }

 private:
  std::array<uintptr_t, 1 << 16> words_{};
};

TEST(StackCache, KnowsAStackByAllItsReturnAddresses) {
  StackCache cache;
  FakeStack stack;
  auto first = stack.set({{2, 100}, {5, 200}, {9, 300}});
  EXPECT_EQ(cache.find(stack.at(2)), 0u);
  cache.add(first, 7);
  EXPECT_EQ(cache.find(stack.at(2)), 7u);
  // The same innermost frames, another one outside: two callers with equal frames under one launcher.
  auto second = stack.set({{2, 100}, {5, 200}, {9, 301}});
  EXPECT_EQ(cache.find(stack.at(2)), 0u);
  cache.add(second, 8);
  EXPECT_EQ(cache.find(stack.at(2)), 8u);
  stack.set({{2, 100}, {5, 200}, {9, 300}});
  EXPECT_EQ(cache.find(stack.at(2)), 7u);
  stack.set({{2, 100}, {5, 201}, {9, 300}});
  EXPECT_EQ(cache.find(stack.at(2)), 0u);
}

TEST(StackCache, FramesMayLieInOtherPlaces) {
  StackCache cache;
  FakeStack stack;
  cache.add(stack.set({{2, 100}, {5, 200}}), 1);
  stack.set({{5, 0}});
  cache.add(stack.set({{2, 100}, {6, 200}}), 2);  // a frame of changing size
  EXPECT_EQ(cache.find(stack.at(2)), 2u);
  stack.set({{5, 200}, {6, 0}});
  EXPECT_EQ(cache.find(stack.at(2)), 1u);
  EXPECT_EQ(cache.find(stack.at(3)), 0u);  // another stack pointer
}

TEST(StackCache, ManyCallersInTurn) {
  StackCache cache;
  FakeStack stack;
  for (uint32_t round = 0; round < 3; ++round) {
    for (uint32_t caller = 1; caller <= 200; ++caller) {
      auto frames = stack.set({{2, 100}, {5, 1000 + caller}, {9, 300}});
      EXPECT_EQ(cache.find(stack.at(2)), round == 0 ? 0 : caller);
      if (round == 0) cache.add(frames, caller);
    }
  }
}

TEST(StackCache, AFullOneBeginsAnew) {
  StackCache cache;
  FakeStack stack;
  uint32_t known = 0;
  for (uint32_t i = 1; i <= 60'000; ++i) {
    cache.add(stack.set({{2 + i, 100 + i}}), i);
    known += cache.find(stack.at(2 + i)) == i;
  }
  EXPECT_GT(known, 59'900u);  // all but those that found it full
  cache.clear();
  EXPECT_EQ(cache.find(stack.at(2)), 0u);
}

TEST(StackCache, CallersWithoutEndDoNotMakeItSlow) {
  StackCache cache;
  FakeStack stack;
  uint32_t known = 0;
  for (uint32_t i = 1; i <= 60'000; ++i) {
    cache.add(stack.set({{2, 100 + i}}), i);
    known += cache.find(stack.at(2)) == i;
  }
  EXPECT_GT(known, 59'900u);
}

TEST(StackCache, AShorterStackGivesWayToALongerOne) {
  StackCache cache;
  FakeStack stack;
  cache.add(stack.set({{2, 100}, {5, 200}}), 1);
  cache.add(stack.set({{2, 100}, {5, 200}, {9, 300}}), 2);
  EXPECT_EQ(cache.find(stack.at(2)), 2u);
}

// ---- the unwinder

struct Unwound {
  std::array<SavedReturn, 64> frames;
  size_t count = 0;
};

[[gnu::noinline]] void inner(const Unwinder& unwinder, Unwound& unwound) {
  unwound.count = unwinder.unwind(LAMINA_SAVED_RETURN(), unwound.frames);
  EXPECT_EQ(unwound.frames[0].location, LAMINA_SAVED_RETURN());
  for (size_t i = 0; i < unwound.count; ++i) EXPECT_EQ(*unwound.frames[i].location, unwound.frames[i].address);
}

[[gnu::noinline]] void outer(const Unwinder& unwinder, Unwound& unwound) {
  inner(unwinder, unwound);
  asm volatile("" ::: "memory");
}

TEST(Unwinder, GivesReturnAddressesWhereTheyLie) {
  Unwinder unwinder;
  if (!unwinder.open()) GTEST_SKIP() << "no libunwind";
  Unwound a, b;
  volatile int times = 2;  // one call, made twice
  for (int i = 0; i < times; ++i) outer(unwinder, i == 0 ? a : b);
  ASSERT_GT(a.count, 3u);
  ASSERT_EQ(a.count, b.count);
  for (size_t i = 0; i < a.count; ++i) {
    EXPECT_EQ(a.frames[i].address, b.frames[i].address) << i;
    if (i > 0) {
      EXPECT_GT(a.frames[i].location, a.frames[i - 1].location);
    }
  }
  std::array<SavedReturn, 2> few;
  EXPECT_EQ(unwinder.unwind(a.frames[0].location, few), 2u);
}

}  // namespace
}  // namespace lamina
