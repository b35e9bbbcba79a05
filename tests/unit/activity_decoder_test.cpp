// CUPTI's records to activity chunks, and what the report reads from them.
#include <gtest/gtest.h>

#include "inject/activity.h"
#include "inject/cupti_api.h"
#include "read_back.h"

namespace lamina {
namespace {

using namespace format;

std::vector<CUpti_Activity*> to_come;
size_t dropped_by_cupti = 0;

// A CUPTI whose buffers hold the records of `to_come`.
class ActivityDecoderTest : public testing::Test {
 protected:
  ActivityDecoderTest() {
    cupti_.next_record = [](uint8_t*, size_t, CUpti_Activity** record) {
      if (to_come.empty()) return CUPTI_ERROR_MAX_LIMIT_REACHED;
      *record = to_come.front();
      to_come.erase(to_come.begin());
      return CUPTI_SUCCESS;
    };
    cupti_.dropped_records = [](CUcontext, uint32_t, size_t* count) {
      *count = dropped_by_cupti;
      return CUPTI_SUCCESS;
    };
    to_come.clear();
    dropped_by_cupti = 0;
  }

  static CUpti_ActivityKernel9 kernel(const char* name, uint32_t correlation, uint64_t start, uint64_t end) {
    CUpti_ActivityKernel9 record{};
    record.kind = CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;
    record.name = name;
    record.correlationId = correlation;
    record.start = start;
    record.end = end;
    return record;
  }
  template <typename Record>
  void complete(Record& record) {
    to_come = {reinterpret_cast<CUpti_Activity*>(&record)};
    decoder_.completed(cupti_, nullptr, 0, decoder_.request(), 1);
  }
  // What was decoded, behind launches of all its correlation ids in a layer of the same number.
  ReadBack read(uint32_t launches) {
    ProfileBuilder p;
    for (uint32_t i = 1; i <= launches; ++i) {
      p.thread().push("layer" + std::to_string(i)).launch(i, i == 2 ? LaunchKind::kMemcpy : LaunchKind::kKernel).pop();
    }
    auto definitions = definitions_.drain();
    ChunkHeader header{};
    header.kind = ChunkKind::kDefinitions;
    p.flush();
    p.add_bytes(chunk_bytes(header, definitions));
    header.kind = ChunkKind::kActivity;
    for (ActivityChunk chunk; decoder_.take(chunk, true);) {
      header.base_time = chunk.base_time;
      p.add_bytes(chunk_bytes(header, chunk.records));
    }
    return read_bytes(p.bytes());
  }

  std::vector<PhasePattern> patterns_;
  Definitions definitions_{patterns_};
  Cupti cupti_;
  ActivityDecoder decoder_{definitions_, 64u << 20};
};

TEST_F(ActivityDecoderTest, KernelsAndCopiesAreRead) {
  for (uint32_t i = 0; i < 1000; ++i) definitions_.string("id" + std::to_string(i));  // ids that only decoding uses
  auto first = kernel("gemm", 1, 1000, 3000);
  complete(first);
  CUpti_ActivityMemcpy5 copy{};
  copy.kind = CUPTI_ACTIVITY_KIND_MEMCPY;
  copy.copyKind = CUPTI_ACTIVITY_MEMCPY_KIND_HTOD;
  copy.srcKind = CUPTI_ACTIVITY_MEMORY_KIND_PINNED;
  copy.dstKind = CUPTI_ACTIVITY_MEMORY_KIND_DEVICE;
  copy.correlationId = 2;
  copy.start = 500;  // before the kernel
  copy.end = 1500;
  complete(copy);
  CUpti_ActivityMemset4 set{};
  set.kind = CUPTI_ACTIVITY_KIND_MEMSET;
  set.memoryKind = CUPTI_ACTIVITY_MEMORY_KIND_DEVICE;
  set.correlationId = 3;
  set.start = 4000;
  set.end = 4500;
  complete(set);
  ReadBack result = read(3);
  expect_totals_add_up(result);
  EXPECT_EQ(result.account().damaged_records, 0);
  std::string text = model_text(result, "all");
  EXPECT_NE(text.find("Memcpy HtoD (Pinned -> Device) 1\n"), std::string::npos) << text;
  EXPECT_NE(text.find("Memset (Device) 0.5\n"), std::string::npos) << text;
  EXPECT_NE(text.find(" 2\n"), std::string::npos) << text;
}

TEST_F(ActivityDecoderTest, SitesOfAChunkAreFoundAgain) {
  constexpr uint32_t kKernels = 5000;
  auto one = kernel("gemm", 1, 1000, 2000);
  for (uint32_t i = 0; i < kKernels; ++i) complete(one);
  ActivityChunk chunk;
  ASSERT_TRUE(decoder_.take(chunk, true));
  EXPECT_EQ(chunk.activities, kKernels);
  EXPECT_EQ(chunk.records.size(), sizeof(KernelSiteRecord) + kKernels * sizeof(ActivityRecord));
}

TEST_F(ActivityDecoderTest, ManySitesKeepTheirIds) {
  constexpr uint32_t kSites = 4000;  // the table grows
  auto one = kernel("gemm", 1, 1000, 2000);
  for (uint32_t round = 0; round < 2; ++round) {
    for (uint32_t i = 0; i < kSites; ++i) {
      one.graphNodeId = i;
      complete(one);
    }
  }
  ActivityChunk chunk;
  ASSERT_TRUE(decoder_.take(chunk, true));
  EXPECT_EQ(chunk.records.size(), kSites * (sizeof(KernelSiteRecord) + 2 * sizeof(ActivityRecord)));
}

TEST_F(ActivityDecoderTest, TimesOfAllWidthsAreExact) {
  constexpr uint64_t kLong = 10'000'000'000;
  for (auto [start, end] : {std::pair<uint64_t, uint64_t>{kLong, kLong + 5},
                            {kLong * 3, kLong * 5},
                            {kLong, kLong},
                            {kLong + 7, kLong + 8}}) {
    auto one = kernel("k", 9, start, end);
    complete(one);
  }
  std::vector<std::pair<uint64_t, uint64_t>> seen;
  ActivityChunk chunk;
  ASSERT_TRUE(decoder_.take(chunk, true));
  ProfileBuilder p;
  ChunkHeader header{};
  header.kind = ChunkKind::kActivity;
  header.base_time = chunk.base_time;
  p.add_bytes(chunk_bytes(header, chunk.records));
  TemporaryFile file(p.bytes());
  LayerTree tree({});
  ProfileObserver observer;
  observer.activity = [&](const Activity& a, auto&&...) {
    seen.emplace_back(a.start, a.duration);
  };
  read_profile(file.path(), tree, std::nullopt, observer);
  std::vector<std::pair<uint64_t, uint64_t>> expected = {
      {kLong, 5}, {kLong * 3, kLong * 2}, {kLong, 0}, {kLong + 7, 1}};
  EXPECT_EQ(seen, expected);
}

TEST_F(ActivityDecoderTest, KernelWithoutUsableTimesSaysSo) {
  for (auto [start, end] : {std::pair<uint64_t, uint64_t>{0, 0}, {100, 50}}) {
    auto one = kernel("k", 1, start, end);
    complete(one);
  }
  EXPECT_EQ(read(1).account().without_time, 2);
}

TEST_F(ActivityDecoderTest, OldestChunkGivesWayAndIsCounted) {
  ActivityDecoder small(definitions_, 1);
  auto one = kernel("k", 1, 100, 200);
  ActivityChunk chunk;
  for (uint64_t i = 0; i < 200'000; ++i) {
    to_come = {reinterpret_cast<CUpti_Activity*>(&one)};
    static uint8_t* buffer = small.request();
    small.completed(cupti_, nullptr, 0, buffer, 1);
    buffer = small.request();
  }
  uint64_t taken = 0;
  while (small.take(chunk, true)) taken += chunk.activities;
  uint64_t lost = small.take_lost();
  EXPECT_GT(lost, 0);
  EXPECT_EQ(taken + lost, 200'000);
}

TEST_F(ActivityDecoderTest, RecordsThatCuptiDroppedAreALoss) {
  dropped_by_cupti = 12;
  auto one = kernel("k", 1, 100, 200);
  complete(one);
  EXPECT_EQ(read(1).processes[0].definitions.losses().at(LossKind::kCuptiDropped), 12);
}

TEST_F(ActivityDecoderTest, NameOfAnUnloadedModuleIsReadAnew) {
  char name[] = "first";
  auto one = kernel(name, 1, 100, 200);
  complete(one);
  strcpy(name, "other");
  decoder_.forget_names();
  complete(one);
  auto bytes = definitions_.drain();
  std::string text(bytes.begin(), bytes.end());
  EXPECT_NE(text.find("first"), std::string::npos);
  EXPECT_NE(text.find("other"), std::string::npos);
}

}  // namespace
}  // namespace lamina
