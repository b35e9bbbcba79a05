// The callers that a frame was seen with: when they end the unwinding, and when they must not.
#include "inject/known_callers.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <vector>

#include "fake_stack.h"

namespace lamina {
namespace {

constexpr size_t kMany = 128;

// Adds the frames from `from` on, each with ten times its place in the stack as node; gives the entry of that at
// `from`.
uint32_t add(KnownCallers& known, const std::vector<SavedReturn>& frames, uint32_t end = KnownCallers::kNone) {
  for (size_t i = frames.size(); i-- > 0;) end = known.add(frames[i], end, static_cast<uint32_t>(10 * (i + 1)));
  return end;
}

struct Found : KnownCallers::Chain {
  std::vector<SavedReturn> callers;
};

Found find(const KnownCallers& known, const SavedReturn& frame, size_t limit = kMany) {
  std::array<SavedReturn, kMany> callers;
  Found found{known.find(frame, std::span(callers).first(limit)), {}};
  found.callers.assign(callers.begin(), callers.begin() + found.size);
  return found;
}

class KnownCallersTest : public testing::Test {
 protected:
  KnownCallersTest() { known.prepare(1, kMany); }

  KnownCallers known;
  FakeStack stack;
};

TEST_F(KnownCallersTest, GivesTheRestOfTheStack) {
  auto frames = stack.set({{2, 100}, {5, 200}, {9, 300}});
  EXPECT_FALSE(find(known, frames[0]).enough);
  uint32_t entry = add(known, frames);
  Found found = find(known, frames[0]);
  EXPECT_TRUE(found.enough && found.complete);
  EXPECT_EQ(found.callers, std::vector(frames.begin() + 1, frames.end()));
  EXPECT_EQ(found.entry, entry);
  EXPECT_EQ(found.node, 10u);
  // From a frame in the middle, and from the outermost.
  found = find(known, frames[1]);
  EXPECT_TRUE(found.complete);
  EXPECT_EQ(found.callers, std::vector(frames.begin() + 2, frames.end()));
  EXPECT_EQ(found.node, 20u);
  found = find(known, frames[2]);
  EXPECT_TRUE(found.complete);
  EXPECT_EQ(found.size, 0u);
  EXPECT_EQ(found.node, 30u);
}

TEST_F(KnownCallersTest, EveryCallerHasToBeThere) {
  auto frames = stack.set({{2, 100}, {5, 200}, {9, 300}, {12, 400}});
  add(known, frames);
  stack.set({{9, 301}});
  Found found = find(known, frames[0]);
  EXPECT_FALSE(found.enough);
  EXPECT_EQ(found.callers, std::vector{frames[1]});
  EXPECT_EQ(found.node, 0u);
  EXPECT_TRUE(find(known, frames[3]).complete);
}

TEST_F(KnownCallersTest, AFrameIsOnePlaceAndOneAddress) {
  auto frames = stack.set({{2, 100}, {5, 200}});
  add(known, frames);
  // More of them than the hash can tell apart.
  for (uintptr_t i = 1; i < 100'000; ++i) {
    ASSERT_FALSE(find(known, {stack.at(2), 100 + i}).enough) << i;
    ASSERT_FALSE(find(known, {stack.at(2) + i, 100}).enough) << i;
  }
}

TEST_F(KnownCallersTest, TheLatestCallersCount) {
  auto first = stack.set({{2, 100}, {5, 200}, {9, 300}});
  uint32_t first_entry = add(known, first);
  auto second = stack.set({{2, 100}, {6, 201}, {9, 300}});
  uint32_t second_entry = add(known, second);
  EXPECT_NE(first_entry, second_entry);
  Found found = find(known, second[0]);
  EXPECT_TRUE(found.complete);
  EXPECT_EQ(found.entry, second_entry);
  EXPECT_EQ(found.callers, std::vector(second.begin() + 1, second.end()));
  // What was chained before stays as it was: an inner frame that is added to it has the first callers.
  SavedReturn inner = stack.set({{1, 50}})[0];
  known.add(inner, first_entry, 5);
  EXPECT_EQ(find(known, inner).callers, first);
}

TEST_F(KnownCallersTest, TheSameChainIsKeptOnce) {
  auto frames = stack.set({{2, 100}, {5, 200}, {9, 300}});
  uint32_t entry = add(known, frames);
  EXPECT_EQ(add(known, frames), entry);
}

TEST_F(KnownCallersTest, BehindAnUnknownCallerUnwindingGoesOn) {
  auto frames = stack.set({{2, 100}, {5, 200}, {9, 300}});
  add(known, frames, KnownCallers::kUnknown);
  Found found = find(known, frames[0]);
  EXPECT_FALSE(found.enough);
  EXPECT_EQ(found.size, 2u);
}

TEST_F(KnownCallersTest, NoMoreThanAreAskedFor) {
  auto frames = stack.set({{2, 100}, {5, 200}, {9, 300}, {12, 400}});
  add(known, frames);
  for (size_t limit = 0; limit < 3; ++limit) {
    Found found = find(known, frames[0], limit);
    EXPECT_TRUE(found.enough);
    EXPECT_FALSE(found.complete);
    EXPECT_EQ(found.size, limit);
    EXPECT_EQ(found.node, 0u) << "stands for more callers";
  }
  EXPECT_TRUE(find(known, frames[0], 3).complete);
}

TEST_F(KnownCallersTest, AnotherGenerationKnowsNothing) {
  auto frames = stack.set({{2, 100}, {5, 200}});
  add(known, frames);
  known.prepare(1, kMany);
  EXPECT_TRUE(find(known, frames[0]).complete);
  known.prepare(2, kMany);
  EXPECT_FALSE(find(known, frames[0]).enough);
}

TEST_F(KnownCallersTest, AFullOneBeginsAnew) {
  size_t found = 0;
  constexpr uint32_t kStacks = 50'000;
  for (uint32_t i = 1; i <= kStacks; ++i) {
    known.prepare(1, kMany);
    auto frames = stack.set({{i, 100 + i}, {60'000, 200}});
    add(known, frames);
    found += find(known, frames[0]).complete;
  }
  EXPECT_EQ(found, kStacks);
}

TEST_F(KnownCallersTest, ReadsNoPlaceWhoseInnerFramesAreNotThere) {
  PagedStack paged(20);
  add(known, paged.frames());
  for (size_t changed = 1; changed < 19; ++changed) {
    paged.word(changed) = 1;
    paged.hide_from(changed + 1);
    EXPECT_EQ(find(known, paged.frames()[0]).size, changed - 1);
    paged.show();
    paged.word(changed) = 1000;
  }
}

}  // namespace
}  // namespace lamina
