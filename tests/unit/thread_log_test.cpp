// A thread's stream: order, blocks, losses, and what stands at the head of a block.
#include "inject/thread_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>

#include "inject/definitions.h"
#include "report/records/profile_file.h"

namespace lamina {
namespace {

using namespace format;
using testing::Each;
using testing::ElementsAre;

struct SeenRecord {
  RecordKind kind;
  uint32_t id;
};

std::vector<SeenRecord> records_of(const ThreadLog::Piece& piece) {
  Chunk chunk;
  chunk.records = piece.records;
  std::vector<SeenRecord> seen;
  EXPECT_TRUE(chunk.for_each([&](const RecordView& view) { seen.push_back({view.header().kind, view.header().id}); }));
  return seen;
}

class ThreadLogTest : public testing::Test {
 protected:
  static constexpr uint32_t kMarksOfABlock = Block::kCapacity / sizeof(MarkRecord);

  void use_blocks(size_t count) {
    pool_ = std::make_unique<BlockPool>(count * Block::kBytes);
    log_ = std::make_unique<ThreadLog>(3, 1234, *pool_, steps_);
  }
  OpenRange* open(uint32_t context, uint32_t domain = 0, uint32_t start_id = 0) {
    return log_->open(nullptr, context, domain, start_id, ++now_);
  }
  void close_innermost() { log_->close_at(log_->open_ranges().size() - 1, ++now_); }
  void mark(uint32_t count) {
    for (uint32_t i = 0; i < count; ++i) log_->mark(i, ++now_);
  }
  std::vector<ThreadLog::Piece> drain() {
    std::vector<ThreadLog::Piece> pieces;
    for (ThreadLog::Piece piece; log_->drain(piece);) pieces.push_back(piece);
    return pieces;
  }

  std::vector<PhasePattern> patterns_;
  Definitions definitions_{patterns_};
  Steps steps_;
  std::unique_ptr<BlockPool> pool_;
  std::unique_ptr<ThreadLog> log_;
  uint64_t now_ = 0;
};

std::string kinds_text(const std::vector<SeenRecord>& records) {
  std::string text;
  for (const SeenRecord& r : records)
    text += std::to_string(static_cast<int>(r.kind)) + ":" + std::to_string(r.id) + " ";
  return text;
}

TEST_F(ThreadLogTest, RecordsComeInTheirOrder) {
  use_blocks(4);
  EXPECT_TRUE(drain().empty());
  open(5);
  log_->append(RecordKind::kLaunch, 0, 77, LaunchRecord{});
  open(6);
  close_innermost();
  close_innermost();
  std::vector<ThreadLog::Piece> pieces = drain();
  ASSERT_EQ(pieces.size(), 1);
  EXPECT_EQ(kinds_text(records_of(pieces[0])), "20:0 22:5 25:77 22:6 23:1 23:0 ");
  EXPECT_TRUE(drain().empty());
  mark(1);
  pieces = drain();
  ASSERT_EQ(pieces.size(), 1);
  EXPECT_EQ(pieces[0].sequence, 1);
  EXPECT_EQ(kinds_text(records_of(pieces[0])), "24:0 ");
}

TEST_F(ThreadLogTest, EachBlockBeginsWithTheOpenCalls) {
  use_blocks(4);
  open(5);
  open(6);
  mark(2 * kMarksOfABlock);
  std::vector<ThreadLog::Piece> pieces = drain();
  ASSERT_EQ(pieces.size(), 3);
  for (uint32_t i = 0; i < pieces.size(); ++i) {
    EXPECT_EQ(pieces[i].sequence, i);
    EXPECT_EQ(records_of(pieces[i])[0].kind, RecordKind::kThreadState);
    EXPECT_EQ(records_of(pieces[i])[0].id, i == 0 ? 0u : 2u);
  }
  OpenCall calls[2];
  memcpy(calls, pieces[1].records.data() + sizeof(ThreadStateRecord), sizeof(calls));
  EXPECT_EQ(calls[0].context, 5);
  EXPECT_EQ(calls[0].call, 1);
  EXPECT_EQ(calls[1].context, 6);
  EXPECT_EQ(calls[1].call, 2);
}

TEST_F(ThreadLogTest, WithoutABlockRecordsAreLostAndCounted) {
  use_blocks(2);
  mark(2 * kMarksOfABlock);
  uint64_t lost = log_->take_lost();
  EXPECT_GT(lost, 0);
  EXPECT_EQ(log_->take_lost(), 0);
  size_t written = 0;
  for (const ThreadLog::Piece& piece : drain()) written += records_of(piece).size() - 1;
  EXPECT_EQ(written + lost, 2 * kMarksOfABlock);
}

TEST_F(ThreadLogTest, WhatFollowsALossBeginsWithTheState) {
  use_blocks(2);
  mark(2 * kMarksOfABlock);
  open(5);  // lost
  EXPECT_GT(log_->take_lost(), 1);
  drain();
  open(6);
  std::vector<ThreadLog::Piece> pieces = drain();
  ASSERT_EQ(pieces.size(), 1);
  EXPECT_EQ(kinds_text(records_of(pieces[0])), "20:1 22:6 ");
}

TEST_F(ThreadLogTest, StepIsNotedWhenItIsNew) {
  use_blocks(2);
  log_->sync_step();
  uint32_t process = steps_.open_range({.phase = 1}, definitions_);
  log_->sync_step();
  log_->sync_step();
  log_->set_own_step(*open(5), 9);
  log_->sync_step();
  close_innermost();
  log_->sync_step();
  EXPECT_EQ(kinds_text(records_of(drain().at(0))),
            "20:0 21:" + std::to_string(process) + " 22:5 21:9 23:0 21:" + std::to_string(process) + " ");
}

TEST_F(ThreadLogTest, LevelsAreCountedInEachDomain) {
  use_blocks(2);
  EXPECT_EQ(open(5, 1)->level, 0);
  EXPECT_EQ(open(6, 2)->level, 0);
  EXPECT_EQ(open(7, 1, 99)->level, 1);  // nvtxRangeStart has none
  EXPECT_EQ(open(8, 1)->level, 1);
}

TEST_F(ThreadLogTest, PushesOnAFullStackAreCountedOff) {
  use_blocks(2);
  for (uint32_t i = 0; i < ThreadLog::kMaxDepth; ++i) ASSERT_NE(open(5), nullptr);
  EXPECT_EQ(open(6), nullptr);
  EXPECT_EQ(open(6), nullptr);
  EXPECT_EQ(log_->open_ranges().size(), ThreadLog::kMaxDepth);
  EXPECT_EQ(log_->pop_uncounted(), static_cast<int>(ThreadLog::kMaxDepth) + 1);
  EXPECT_EQ(log_->pop_uncounted(), static_cast<int>(ThreadLog::kMaxDepth));
  EXPECT_EQ(log_->pop_uncounted(), -1);
}

TEST_F(ThreadLogTest, ForkedThreadGoesOnInTheSameCalls) {
  use_blocks(2);
  log_->set_own_step(*open(5), 9);
  ThreadLog child(0, 1, *pool_, steps_);
  child.inherit(*log_);
  child.sync_step();
  child.mark(1, 1);
  ThreadLog::Piece piece;
  ASSERT_TRUE(child.drain(piece));
  EXPECT_EQ(kinds_text(records_of(piece)), "20:1 24:1 ");
  EXPECT_EQ(child.current_context(), 5);
}

// ---- the pool

TEST(BlockPools, GiveNoMoreThanTheirCap) {
  BlockPool pool(20 * Block::kBytes + 5);
  std::vector<Block*> blocks;
  while (Block* block = pool.take()) blocks.push_back(block);
  EXPECT_EQ(blocks.size(), 20);
  pool.give_back(blocks.back());
  EXPECT_EQ(pool.take(), blocks.back());
  EXPECT_EQ(pool.take(), nullptr);
}

TEST(BlockPools, SmallerThanABlockGiveNone) { EXPECT_EQ(BlockPool(Block::kBytes - 1).take(), nullptr); }

}  // namespace
}  // namespace lamina
