#include "report/records/read_ahead.h"

#include <gtest/gtest.h>

#include "read_back.h"

namespace lamina {
namespace {

using namespace format;

constexpr uint32_t kPieces = 50;

std::string many_chunks() {
  ProfileBuilder p;
  for (uint32_t i = 0; i < kPieces; ++i) {
    p.thread().mark("m" + std::to_string(i));
    p.flush();
  }
  return p.bytes();
}

TEST(ReadAhead, GivesTheChunksInOrder) {
  TemporaryFile file(many_chunks());
  ProfileFile direct(file.path()), ahead(file.path());
  Chunk expected;
  {
    ReadAhead chunks(ahead);
    while (direct.next(expected)) {
      const Chunk* chunk = chunks.next();
      ASSERT_NE(chunk, nullptr);
      EXPECT_EQ(chunk->offset, expected.offset);
      EXPECT_EQ(chunk->records, expected.records);
    }
    EXPECT_EQ(chunks.next(), nullptr);
    EXPECT_EQ(chunks.next(), nullptr);
  }
  EXPECT_TRUE(ahead.has_trailer());
}

TEST(ReadAhead, MayBeLeftBeforeTheEnd) {
  TemporaryFile file(many_chunks());
  for (int count : {0, 1, 20}) {
    ProfileFile profile(file.path());
    ReadAhead chunks(profile);
    for (int i = 0; i < count; ++i) EXPECT_NE(chunks.next(), nullptr);
  }
}

TEST(ReadAhead, TellsDamageAtItsEnd) {
  std::string bytes = many_chunks();
  TemporaryFile file(bytes.substr(0, bytes.size() - 20));
  ProfileFile profile(file.path());
  ReadAhead chunks(profile);
  while (chunks.next()) {
  }
  EXPECT_EQ(profile.damage().size(), 1);
  EXPECT_FALSE(profile.has_trailer());
}

}  // namespace
}  // namespace lamina
