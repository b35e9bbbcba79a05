// Call stacks: the cache that proves a stack is a known one, and the unwinder on the stack of this program.
#include "inject/stacks.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <random>
#include <vector>

#include "fake_stack.h"
#include "inject/definitions.h"
#include "inject/known_callers.h"
#include "inject/stack_cache.h"
#include "inject/thread_stacks.h"
#include "inject/unwinder.h"

namespace lamina {
namespace {

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
  size_t kept = 0;
  for (uint32_t i = 1; i <= 60'000; ++i) {
    stack.set({{2, 100 + i}});
    kept += cache.find(stack.at(2)) == i;
  }
  EXPECT_LE(kept, 1024u);
}

TEST(StackCache, AShorterStackGivesWayToALongerOne) {
  StackCache cache;
  FakeStack stack;
  cache.add(stack.set({{2, 100}, {5, 200}}), 1);
  cache.add(stack.set({{2, 100}, {5, 200}, {9, 300}}), 2);
  EXPECT_EQ(cache.find(stack.at(2)), 2u);
}

FakeStack::Frames long_stack(size_t frames) {
  FakeStack::Frames stack;
  for (size_t i = 0; i < frames; ++i) stack.push_back({2 + 3 * i, 100 + i});
  return stack;
}

TEST(StackCache, StacksDivergeAtEveryFrame) {
  StackCache cache;
  FakeStack stack;
  constexpr size_t kFrames = 20;
  auto whole = long_stack(kFrames);
  auto other = [&](size_t at) {
    auto frames = whole;
    for (size_t i = at; i < kFrames; ++i) frames[i].second += 1000;
    return frames;
  };
  cache.add(stack.set(whole), 1000);
  for (uint32_t at = 1; at < kFrames; ++at) {
    auto frames = stack.set(other(at));
    EXPECT_EQ(cache.find(stack.at(2)), 0u) << at;
    cache.add(frames, at);
  }
  for (uint32_t at = 1; at < kFrames; ++at) {
    stack.set(other(at));
    EXPECT_EQ(cache.find(stack.at(2)), at);
    // Each frame counts, however long the run is that it is in.
    for (auto [place, address] : other(at)) {
      if (place == 2) continue;
      stack.set({{place, 1}});
      EXPECT_EQ(cache.find(stack.at(2)), 0u) << at << ", place " << place;
      stack.set({{place, address}});
    }
  }
  stack.set(whole);
  EXPECT_EQ(cache.find(stack.at(2)), 1000u);
}

TEST(StackCache, AStackMayEndInsideOfARun) {
  StackCache cache;
  FakeStack stack;
  cache.add(stack.set(long_stack(10)), 1);
  cache.add(stack.set(long_stack(4)), 2);
  EXPECT_EQ(cache.find(stack.at(2)), 2u);  // all of the shorter one is there
  cache.add(stack.set(long_stack(10)), 3);
  EXPECT_EQ(cache.find(stack.at(2)), 3u);
  stack.set({{2 + 3 * 9, 1}});
  EXPECT_EQ(cache.find(stack.at(2)), 0u);
}

TEST(StackCache, RunsThatShareTheirFirstFrames) {
  StackCache cache;
  FakeStack stack;
  // The ring holds runs of one first place; the second of the pair is where they differ.
  for (uint32_t i = 1; i <= 50; ++i) cache.add(stack.set({{2, 100}, {5, 200}, {9, 300 + i}, {12, 400}}), i);
  for (uint32_t i = 1; i <= 50; ++i) cache.add(stack.set({{2, 100}, {5, 201}, {9, 300 + i}, {12, 400}}), 50 + i);
  for (uint32_t i : {7u, 50u, 1u}) {
    stack.set({{5, 200}, {9, 300 + i}});
    EXPECT_EQ(cache.find(stack.at(2)), i);
    stack.set({{5, 201}});
    EXPECT_EQ(cache.find(stack.at(2)), 50 + i);
  }
}

TEST(StackCache, ARunThatOnlyBeginsRightHidesNoOther) {
  StackCache cache;
  FakeStack stack;
  cache.add(stack.set({{2, 100}, {5, 200}, {9, 300}}), 1);
  stack.set({{5, 0}, {9, 0}});
  cache.add(stack.set({{2, 100}, {6, 200}, {10, 300}}), 2);
  stack.set({{5, 200}});  // left from a call that has returned
  EXPECT_EQ(cache.find(stack.at(2)), 2u);
  EXPECT_EQ(cache.find(stack.at(2)), 2u);
}

TEST(StackCache, AClearedOneLearnsAgain) {
  StackCache cache;
  FakeStack stack;
  auto frames = stack.set(long_stack(10));
  cache.add(frames, 1);
  cache.clear();
  EXPECT_EQ(cache.find(stack.at(2)), 0u);
  cache.add(frames, 2);
  EXPECT_EQ(cache.find(stack.at(2)), 2u);
}

TEST(StackCache, AFullOneOfLongStacksBeginsAnew) {
  StackCache cache;
  FakeStack stack;
  for (uint32_t i = 1; i <= 3'000; ++i) {
    auto frames = long_stack(128);
    for (size_t at = i % 100; at < frames.size(); ++at) frames[at].second += 1000 * i;
    cache.add(stack.set(frames), i);
    ASSERT_EQ(cache.find(stack.at(2)), i);
  }
}

TEST(StackCache, ReadsNoPlaceWhoseInnerFramesAreNotThere) {
  StackCache cache;
  PagedStack stack(20);
  cache.add(stack.frames(), 1);
  for (size_t changed = 1; changed < 19; ++changed) {
    stack.word(changed) = 1;
    stack.hide_from(changed + 1);
    EXPECT_EQ(cache.find(stack.frames()[0].location), 0u);
    stack.show();
    stack.word(changed) = 1000;
  }
  EXPECT_EQ(cache.find(stack.frames()[0].location), 1u);
}

// What the cache has to know: all stacks, but those that a longer one goes on from.
class Model {
 public:
  uint32_t find(const FakeStack::Frames& frames) const {
    for (size_t size = 1; size <= frames.size(); ++size) {
      auto known = stacks_.find(first(frames, size));
      if (known != stacks_.end()) return known->second;
    }
    return 0;
  }
  void add(const FakeStack::Frames& frames, uint32_t stack) {
    for (size_t size = 1; size < frames.size(); ++size) stacks_.erase(first(frames, size));
    stacks_[frames] = stack;
  }
  void clear() { stacks_.clear(); }

 private:
  static FakeStack::Frames first(const FakeStack::Frames& frames, size_t size) {
    return {frames.begin(), frames.begin() + static_cast<ptrdiff_t>(size)};
  }
  std::map<FakeStack::Frames, uint32_t> stacks_;
};

TEST(StackCache, KnowsWhatAModelOfItKnows) {
  std::mt19937 random(1);
  auto one_of = [&](uint32_t count) { return static_cast<uint32_t>(random() % count); };
  StackCache cache;
  Model model;
  FakeStack stack;
  size_t known = 0, news = 0;
  FakeStack::Frames frames;
  for (uint32_t i = 1; i <= 20'000; ++i) {
    stack.wipe(frames);
    // Calls and returns: the outer frames stay as they are, those inside of them become others.
    size_t kept = one_of(static_cast<uint32_t>(frames.size()) + 1);
    frames.erase(frames.begin(), frames.end() - static_cast<ptrdiff_t>(kept));
    size_t size = std::max<size_t>(1, kept + one_of(4));
    while (frames.size() < size && frames.size() < 40) {
      size_t place = 1000 - 10 * frames.size();
      frames.insert(frames.begin(), {place + one_of(2), 100 + one_of(2)});
    }
    auto saved = stack.set(frames);
    uint32_t expected = model.find(frames);
    ASSERT_EQ(cache.find(saved[0].location), expected) << "stack " << i;
    ++(expected ? known : news);
    if (expected == 0 || one_of(50) == 0) {
      cache.add(saved, i);
      model.add(frames, i);
    }
    if (one_of(5000) == 0) cache.clear(), model.clear();
  }
  EXPECT_GT(known, 2'000u);
  EXPECT_GT(news, 2'000u);
}

// ---- the unwinder

struct Stack {
  std::array<SavedReturn, 64> frames;
  Unwinder::Unwound unwound;
};

[[gnu::noinline]] void inner(const Unwinder& unwinder, const KnownCallers& known, Stack& stack, size_t limit) {
  stack.unwound = unwinder.unwind(LAMINA_SAVED_RETURN(), std::span(stack.frames).first(limit), known);
  EXPECT_EQ(stack.frames[0].location, LAMINA_SAVED_RETURN());
  for (size_t i = 0; i < stack.unwound.size; ++i) EXPECT_EQ(*stack.frames[i].location, stack.frames[i].address);
}

[[gnu::noinline]] void outer(const Unwinder& unwinder, const KnownCallers& known, Stack& stack, size_t limit = 64) {
  inner(unwinder, known, stack, limit);
  asm volatile("" ::: "memory");
}

class UnwinderTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!unwinder.open()) GTEST_SKIP() << "no libunwind";
    known.prepare(1, 128);
  }
  void learn(const Stack& stack) {
    uint32_t caller = stack.unwound.caller;
    for (size_t i = stack.unwound.new_size; i-- > 1;) caller = known.add(stack.frames[i], caller, 7);
  }

  Unwinder unwinder;
  KnownCallers known;
};

void expect_same(const Stack& a, const Stack& b) {
  ASSERT_EQ(a.unwound.size, b.unwound.size);
  for (size_t i = 0; i < a.unwound.size; ++i) EXPECT_EQ(a.frames[i], b.frames[i]) << i;
}

TEST_F(UnwinderTest, GivesReturnAddressesWhereTheyLie) {
  Stack stacks[2];
  for (Stack& stack : stacks) outer(unwinder, known, stack);  // one call, made twice
  const Stack& stack = stacks[0];
  ASSERT_GT(stack.unwound.size, 3u);
  EXPECT_TRUE(stack.unwound.complete);
  EXPECT_EQ(stack.unwound.new_size, stack.unwound.size);
  EXPECT_EQ(stack.unwound.caller, KnownCallers::kNone);
  for (size_t i = 1; i < stack.unwound.size; ++i) EXPECT_GT(stack.frames[i].location, stack.frames[i - 1].location);
  expect_same(stack, stacks[1]);
}

TEST_F(UnwinderTest, StopsWhereTheCallersAreKnown) {
  Stack stacks[2];
  for (Stack& stack : stacks) {
    outer(unwinder, known, stack);
    learn(stack);
  }
  expect_same(stacks[0], stacks[1]);
  EXPECT_EQ(stacks[1].unwound.new_size, 1u);
  EXPECT_TRUE(stacks[1].unwound.complete);
  EXPECT_EQ(stacks[1].unwound.node, 7u);
}

TEST_F(UnwinderTest, GoesOnWhereAKnownCallerIsNotThere) {
  Stack stacks[2];
  outer(unwinder, known, stacks[0]);
  ASSERT_GT(stacks[0].unwound.size, 6u);
  learn(stacks[0]);
  // As if some had once been called from elsewhere.
  uintptr_t elsewhere = 1;
  uint32_t caller = known.add({&elsewhere, 2}, KnownCallers::kNone, 7);
  for (size_t i = 5; i-- > 1;) caller = known.add(stacks[0].frames[i], caller, 7);
  outer(unwinder, known, stacks[1]);
  // The two calls of outer() are different frames.
  ASSERT_EQ(stacks[0].unwound.size, stacks[1].unwound.size);
  for (size_t i = 2; i < stacks[1].unwound.size; ++i) EXPECT_EQ(stacks[0].frames[i], stacks[1].frames[i]) << i;
  EXPECT_EQ(stacks[1].unwound.new_size, 5u) << "the callers of the next frame are known";
}

TEST_F(UnwinderTest, AStackIsCutAtTheLimit) {
  Stack whole;
  std::array<Stack, 8> cut;
  for (size_t round = 0; round < 3; ++round) {  // nothing known, cut stacks, the whole one
    for (size_t limit = 1; limit < cut.size(); ++limit) {
      outer(unwinder, known, cut[limit], limit);
      EXPECT_EQ(cut[limit].unwound.size, limit);
      EXPECT_FALSE(cut[limit].unwound.complete);
      EXPECT_EQ(cut[limit].unwound.node, 0u);
      if (round == 1) learn(cut[limit]);
    }
    if (round != 1) continue;
    outer(unwinder, known, whole);
    learn(whole);
    ASSERT_GT(whole.unwound.size, cut.size());
    EXPECT_TRUE(whole.unwound.complete);
  }
  for (size_t limit = 3; limit < cut.size(); ++limit) {
    EXPECT_LT(cut[limit].unwound.new_size, limit);
    for (size_t i = 2; i < limit; ++i) EXPECT_EQ(cut[limit].frames[i], whole.frames[i]) << i;
  }
}

// ---- the stacks of a thread

class Caller {
 public:
  explicit Caller(Stacks& stacks) : stacks_(stacks) {}

  // Random calls, so that stacks share some of their outer frames, and differ in their depth.
  void descend(size_t depth) {
    if (depth == 0) return compare();
    call(depth - 1);
    if (random_() % 16 == 0) call(depth / 2);
  }

 private:
  void call(size_t depth) {
    switch (random_() % 8) {
      case 0:
        return first(depth);
      case 1:
        return second(depth);
      default:
        return third(depth);
    }
  }
  [[gnu::noinline]] void first(size_t depth) { descend(depth); }
  [[gnu::noinline]] void second(size_t depth) {
    volatile char larger[64] = {};
    descend(depth);
    larger[0] = larger[1];
  }
  [[gnu::noinline]] void third(size_t depth) { descend(depth); }

  // What a thread says that has seen other stacks, and one that has seen none.
  [[gnu::noinline]] void compare() {
    const uintptr_t* innermost = LAMINA_SAVED_RETURN();
    auto nothing_seen = std::make_unique<ThreadStacks>();
    uint32_t stack = used_->find(stacks_, innermost, nullptr);
    EXPECT_NE(stack, 0u);
    EXPECT_EQ(stack, nothing_seen->find(stacks_, innermost, nullptr));
    EXPECT_EQ(stack, used_->find(stacks_, innermost, nullptr));
  }

  Stacks& stacks_;
  std::unique_ptr<ThreadStacks> used_ = std::make_unique<ThreadStacks>();
  std::mt19937 random_{1};
};

TEST(ThreadStacks, WhatWasSeenBeforeChangesNoStack) {
  std::vector<PhasePattern> patterns;
  Definitions definitions(patterns);
  Stacks stacks(definitions);
  if (!stacks.open()) GTEST_SKIP() << "no libunwind";
  Caller caller(stacks);
  for (size_t depth : {5, 12, 30, 37, 38, 39, 40, 41, 42, 43, 70, 30, 9}) {  // three frames each
    for (int i = 0; i < 10; ++i) caller.descend(depth);
    if (depth == 41) stacks.forget_addresses();
  }
}

}  // namespace
}  // namespace lamina
