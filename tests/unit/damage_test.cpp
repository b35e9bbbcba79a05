// Files that were cut or damaged: what is whole is read, nothing else happens.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "read_back.h"
#include "report/errors.h"

namespace lamina {
namespace {

using namespace format;

// Several pieces of a thread and their activity; definitions stand in front of each.
class DamageTest : public testing::Test {
 protected:
  static constexpr uint32_t kPieces = 4;

  DamageTest() {
    for (uint32_t i = 1; i <= kPieces; ++i) {
      profile_.thread().state().push("layer" + std::to_string(i)).launch(i).pop();
      profile_.kernel(i, "k", 1);
      profile_.flush();
    }
    offsets_ = profile_.chunk_offsets();
    offsets_.push_back(profile_.bytes(false).size());  // the trailer
    bytes_ = profile_.bytes();
    offsets_.push_back(bytes_.size());
  }

  ProfileBuilder profile_;
  std::string bytes_;
  std::vector<size_t> offsets_;
};

TEST_F(DamageTest, FileCutAnywhereGivesAllBeforeTheCut) {
  constexpr size_t kChunksOfAPiece = 3;
  for (size_t size = 0; size < bytes_.size(); ++size) {
    std::string cut = bytes_.substr(0, size);
    if (size < sizeof(FileHeader)) {
      EXPECT_THROW(read_bytes(cut), InputError) << size;
      continue;
    }
    ReadBack result = read_bytes(cut);
    expect_totals_add_up(result);
    auto whole = std::upper_bound(offsets_.begin(), offsets_.end(), size) - offsets_.begin() - 1;
    auto pieces = std::max<long>(whole, 0) / static_cast<long>(kChunksOfAPiece);
    uint64_t kernels = result.account().activities[0];
    ASSERT_EQ(kernels, std::min<long>(pieces, kPieces)) << size;
    ASSERT_FALSE(result.processes[0].ended);
  }
}

TEST_F(DamageTest, FlippedByteCostsOneChunk) {
  for (size_t at = sizeof(FileHeader); at < offsets_[offsets_.size() - 2]; ++at) {
    std::string damaged = bytes_;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x5a);
    ReadBack result = read_bytes(damaged);
    expect_totals_add_up(result);
    ASSERT_GE(result.account().activities[0], kPieces - 1) << at;
    ASSERT_LE(result.processes[0].damage.size(), 1) << at;
    ASSERT_TRUE(result.processes[0].ended) << at;
    auto chunk = std::upper_bound(offsets_.begin(), offsets_.end(), at) - 1;
    bool in_header = at - *chunk < sizeof(ChunkHeader);
    ASSERT_TRUE(!in_header || result.processes[0].damage.size() == 1) << at;
  }
}

TEST_F(DamageTest, FlippedByteInAChunkIsReported) {
  std::string damaged = bytes_;
  damaged[offsets_[2] + sizeof(ChunkHeader) + 20] ^= 1;
  ReadBack result = read_bytes(damaged);
  ASSERT_EQ(result.processes[0].damage.size(), 1);
  EXPECT_EQ(result.processes[0].damage[0].offset, offsets_[2]);
  EXPECT_EQ(result.processes[0].damage[0].what, "damaged chunk");
  EXPECT_EQ(result.account().activities[0], kPieces - 1);
}

TEST_F(DamageTest, FileHeaderWithAFlippedByteIsReadOrRefused) {
  for (size_t at = 0; at < sizeof(FileHeader); ++at) {
    std::string damaged = bytes_;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x5a);
    try {
      expect_totals_add_up(read_bytes(damaged));
    } catch (const InputError&) {
    }
  }
}

TEST_F(DamageTest, GarbageBetweenChunksIsPassedOver) {
  uint32_t random = 1;
  for (size_t length : {1, 7, 39, 40, 41, 70'000}) {
    std::string garbage;
    for (size_t i = 0; i < length; ++i) garbage += static_cast<char>((random = random * 1664525 + 1013904223) >> 24);
    for (size_t offset : offsets_) {
      std::string damaged = bytes_;
      damaged.insert(offset, garbage);
      ReadBack result = read_bytes(damaged);
      ASSERT_EQ(result.account().activities[0], kPieces) << length << " at " << offset;
      ASSERT_EQ(result.processes[0].damage.size(), 1);
      EXPECT_EQ(result.processes[0].damage[0].offset, offset);
    }
  }
}

TEST_F(DamageTest, GarbageThatLooksLikeChunksIsOneStretch) {
  constexpr size_t kMagics = 100'000;
  std::string garbage;
  for (size_t i = 0; i < kMagics; ++i) garbage += "LCHK";
  std::string damaged = bytes_;
  damaged.insert(offsets_[3], garbage);
  ReadBack result = read_bytes(damaged);
  EXPECT_EQ(result.account().activities[0], kPieces);
  EXPECT_EQ(result.processes[0].damage.size(), 1);
}

TEST_F(DamageTest, ChunkMagicAtTheEndOfTheSearchWindowIsFound) {
  for (size_t length = (1u << 16) - 50; length < (1u << 16) + 5; ++length) {
    std::string damaged = bytes_;
    damaged.insert(offsets_[3], std::string(length, 'x'));
    ASSERT_EQ(read_bytes(damaged).account().activities[0], kPieces) << length;
  }
}

TEST_F(DamageTest, MissingDefinitionsLeaveTheTimes) {
  std::string damaged = bytes_.substr(0, offsets_[0]) + bytes_.substr(offsets_[1]);
  ReadBack result = read_bytes(damaged);
  expect_totals_add_up(result);
  EXPECT_EQ(result.account().activities[0], kPieces);
}

TEST_F(DamageTest, ImpossibleSizesAreRefused) {
  ChunkHeader header{};
  header.magic = kChunkMagic;
  header.kind = ChunkKind::kActivity;
  for (auto [stored, raw] :
       {std::pair{8u, 0xffffffffu}, std::pair{0xffffffffu, 8u}, std::pair{0u, 8u}, std::pair{8u, kMaxChunkBytes + 1}}) {
    header.stored_size = stored;
    header.raw_size = raw;
    header.check = header_check(header);
    std::string damaged = bytes_;
    damaged.insert(offsets_[3], std::string(reinterpret_cast<char*>(&header), sizeof(header)));
    ReadBack result = read_bytes(damaged);
    EXPECT_EQ(result.account().activities[0], kPieces);
    EXPECT_EQ(result.processes[0].damage.size(), 1);
  }
}

}  // namespace
}  // namespace lamina
