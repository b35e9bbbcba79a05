#include "report/flat_map.h"

#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <unordered_map>

namespace lamina {
namespace {

// Does the same to both, and compares.
void compare_with_standard(FlatMap<uint64_t, uint64_t> map, uint64_t stride, uint64_t keys) {
  std::unordered_map<uint64_t, uint64_t> expected;
  std::mt19937_64 random(1);
  for (uint64_t round = 0; round < 20'000; ++round) {
    uint64_t key = random() % keys * stride;
    if (random() % 3 == 0) {
      map.erase(key);
      expected.erase(key);
    } else {
      auto [value, added] = map.try_emplace(key);
      EXPECT_EQ(added, !expected.contains(key));
      *value = expected[key] = round;
    }
    ASSERT_EQ(map.size(), expected.size());
  }
  for (uint64_t key = 0; key < keys * stride; key += stride) {
    const uint64_t* value = map.find(key);
    ASSERT_EQ(value != nullptr, expected.contains(key)) << key;
    EXPECT_EQ(value ? *value : 0, value ? expected[key] : 0);
  }
  size_t visited = 0;
  map.for_each([&](uint64_t key, uint64_t value) {
    EXPECT_EQ(value, expected.at(key));
    ++visited;
  });
  EXPECT_EQ(visited, expected.size());
}

TEST(FlatMap, DoesWhatTheStandardOneDoes) {
  for (uint64_t stride : {1, 3, 64, 4096, 1 << 20}) {
    for (uint64_t keys : {5, 1000, 100'000}) {
      compare_with_standard({}, stride, keys);
      compare_with_standard(FlatMap<uint64_t, uint64_t>(FlatMap<uint64_t, uint64_t>::Keys::kMixed), stride, keys);
    }
  }
}

TEST(FlatMap, ValuesAreFreedWithTheirEntry) {
  FlatMap<uint32_t, std::shared_ptr<int>> map;
  auto value = std::make_shared<int>(1);
  for (uint32_t i = 0; i < 100; ++i) map[i] = value;
  for (uint32_t i = 0; i < 50; ++i) map.erase(i);
  EXPECT_EQ(value.use_count(), 51);
  map.clear();
  EXPECT_EQ(value.use_count(), 1);
  EXPECT_EQ(map.find(60), nullptr);
}

TEST(FlatMap, ReservesBeforeItIsUsed) {
  FlatMap<uint32_t, int> map;
  map.reserve(1000);
  EXPECT_TRUE(map.empty());
  int* first = map.try_emplace(1).first;
  for (uint32_t i = 2; i <= 1000; ++i) map[i];
  EXPECT_EQ(map.find(1), first);
}

}  // namespace
}  // namespace lamina
