// The profile file: what the writer writes is read again, versions, and records of newer recorders.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "inject/file_writer.h"
#include "read_back.h"
#include "report/errors.h"
#include "report/render/raw_json.h"

namespace lamina {
namespace {

using namespace format;
using testing::HasSubstr;

std::string error_of(std::string_view bytes) {
  try {
    read_bytes(bytes);
  } catch (const InputError& error) {
    return error.what();
  }
  return "(no error)";
}

std::string error_of_path(const std::string& path) {
  LayerTree tree({});
  try {
    read_profile(path, tree);
  } catch (const InputError& error) {
    return error.what();
  }
  return "(no error)";
}

FileHeader usual_header() {
  FileHeader header;
  memcpy(&header, file_header().data(), sizeof(header));
  return header;
}

ChunkHeader chunk_header(ChunkKind kind) {
  ChunkHeader header{};
  header.kind = kind;
  return header;
}

// A folder of its own that is gone with the test.
class FolderTest : public testing::Test {
 protected:
  FolderTest() { std::filesystem::create_directories(folder_); }
  ~FolderTest() override { std::filesystem::remove_all(folder_); }
  std::string folder_ = testing::TempDir() + "/lamina_format_test." + std::to_string(getpid());
};

using Writer = FolderTest;

std::string read_text(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST_F(Writer, ChunksAreReadAgain) {
  FileWriter writer;
  ASSERT_TRUE(writer.open(folder_ + "/new/deep")) << writer.problem();
  std::vector<char> records;
  append_record(records, RecordKind::kMark, 0, 1, MarkRecord{{}, 42});
  ChunkHeader written = chunk_header(ChunkKind::kThread);
  written.thread = 3;
  written.sequence = 9;
  written.base_time = 77;
  ASSERT_TRUE(writer.write(written, records));
  EXPECT_EQ(writer.chunks(), 1);
  ProfileFile file(writer.path());
  EXPECT_EQ(file.header().pid, static_cast<uint32_t>(getpid()));
  Chunk chunk;
  ASSERT_TRUE(file.next(chunk));
  EXPECT_EQ(chunk.header.thread, 3);
  EXPECT_EQ(chunk.header.sequence, 9);
  EXPECT_EQ(chunk.header.base_time, 77);
  EXPECT_EQ(chunk.records, records);
  EXPECT_FALSE(file.next(chunk));
  EXPECT_FALSE(file.has_trailer());
}

TEST_F(Writer, MoreThanAChunkHoldsIsSplitBetweenRecords) {
  FileWriter writer;
  ASSERT_TRUE(writer.open(folder_));
  constexpr uint32_t kRecords = kMaxChunkBytes / sizeof(MarkRecord) * 2 + 5;
  std::vector<char> records;
  for (uint32_t i = 0; i < kRecords; ++i) append_record(records, RecordKind::kMark, 0, i, MarkRecord{});
  ASSERT_TRUE(writer.write(chunk_header(ChunkKind::kThread), records));
  ProfileFile file(writer.path());
  Chunk chunk;
  uint32_t next = 0;
  while (file.next(chunk)) {
    EXPECT_TRUE(chunk.for_each([&](const RecordView& record) { EXPECT_EQ(record.header().id, next++); }));
  }
  EXPECT_EQ(next, kRecords);
  EXPECT_EQ(writer.chunks(), 3);
  EXPECT_TRUE(file.damage().empty());
}

TEST_F(Writer, NeverWritesToAFileThatIsThere) {
  FileWriter first, second;
  ASSERT_TRUE(first.open(folder_));
  std::string before = read_text(first.path());
  ASSERT_TRUE(second.open(folder_));
  EXPECT_NE(first.path(), second.path());
  std::vector<char> records;
  append_record(records, RecordKind::kMark, 0, 1, MarkRecord{});
  second.write(chunk_header(ChunkKind::kThread), records);
  EXPECT_EQ(read_text(first.path()), before);
}

TEST_F(Writer, SaysWhyTheFolderCanNotBeMade) {
  std::ofstream(folder_ + "/file") << "x";
  FileWriter writer;
  EXPECT_FALSE(writer.open(folder_ + "/file/below"));
  EXPECT_THAT(writer.problem(), HasSubstr("can not create folder " + folder_ + "/file/below"));
  EXPECT_FALSE(writer.write(chunk_header(ChunkKind::kThread), std::vector<char>(8)));
}

// ---- records

// A record and the fields that `lamina dump` shows of it.
struct RecordCase {
  RecordKind kind;
  size_t size;
  const char* name;
};

constexpr RecordCase kCases[] = {
    {RecordKind::kString, sizeof(StringRecord), "string"},
    {RecordKind::kContext, sizeof(ContextRecord), "context"},
    {RecordKind::kStep, sizeof(StepRecord), "step"},
    {RecordKind::kStepEnd, sizeof(StepEndRecord), "step_end"},
    {RecordKind::kProperty, sizeof(PropertyRecord), "property"},
    {RecordKind::kClockPair, sizeof(ClockPairRecord), "clock_pair"},
    {RecordKind::kLoss, sizeof(LossRecord), "loss"},
    {RecordKind::kThreadName, sizeof(ThreadNameRecord), "thread"},
    {RecordKind::kThreadState, sizeof(ThreadStateRecord), "thread_state"},
    {RecordKind::kStepChange, sizeof(StepChangeRecord), "step_change"},
    {RecordKind::kPush, sizeof(PushRecord), "push"},
    {RecordKind::kPop, sizeof(PopRecord), "pop"},
    {RecordKind::kMark, sizeof(MarkRecord), "mark"},
    {RecordKind::kLaunch, sizeof(LaunchRecord), "launch"},
    {RecordKind::kGraphCreated, sizeof(GraphCreatedRecord), "graph"},
    {RecordKind::kGraphNode, sizeof(GraphNodeRecord), "graph_node"},
    {RecordKind::kGraphNodeCloned, sizeof(GraphNodeClonedRecord), "graph_node_cloned"},
    {RecordKind::kGraphExec, sizeof(GraphExecRecord), "graph_exec"},
    {RecordKind::kGraphDestroyed, sizeof(GraphDestroyedRecord), "graph_destroyed"},
    {RecordKind::kGraphExecDestroyed, sizeof(GraphDestroyedRecord), "graph_exec_destroyed"},
    {RecordKind::kGraphNodeUpdated, sizeof(GraphNodeUpdatedRecord), "graph_node_updated"},
    {RecordKind::kGraphExecUpdated, sizeof(GraphExecUpdatedRecord), "graph_exec_updated"},
    {RecordKind::kGraphNodeSetParams, sizeof(GraphNodeSetParamsRecord), "graph_node_set_params"},
    {RecordKind::kTrailer, sizeof(TrailerRecord), "trailer"},
};

nlohmann::ordered_json json_of(RecordKind kind, size_t size) {
  std::vector<char> bytes(size);
  RecordHeader header{kind, 0, static_cast<uint16_t>(size / 8), 1};
  memcpy(bytes.data(), &header, sizeof(header));
  Chunk chunk;
  chunk.records = bytes;
  nlohmann::ordered_json json;
  chunk.for_each([&](const RecordView& record) { json = raw_json(record, ProcessDefinitions()); });
  return json;
}

TEST(Records, EachKindIsNamed) {
  for (const RecordCase& c : kCases) {
    EXPECT_EQ(json_of(c.kind, c.size)["record"], c.name);
    EXPECT_FALSE(json_of(c.kind, c.size).contains("error")) << c.name;
  }
}

TEST(Records, LongerOnesOfANewerRecorderAreReadByTheirPrefix) {
  for (const RecordCase& c : kCases) EXPECT_FALSE(json_of(c.kind, c.size + 16).contains("error")) << c.name;
}

TEST(Records, ShorterOnesAreRefused) {
  for (const RecordCase& c : kCases) {
    if (c.size > sizeof(RecordHeader) && c.kind != RecordKind::kGraphDestroyed &&
        c.kind != RecordKind::kGraphExecDestroyed) {
      EXPECT_EQ(json_of(c.kind, c.size - 8)["error"], "record too short") << c.name;
    }
  }
}

TEST(Records, UnknownKindsArePassedOver) {
  ProfileBuilder p;
  p.define(static_cast<RecordKind>(200), 0, 1, PropertyRecord{}, "of a newer recorder");
  p.thread().push("a").record(static_cast<RecordKind>(201), 0, 1, LaunchRecord{}).launch(1).pop();
  p.kernel(1, "k", 1);
  p.flush();
  p.add_bytes(chunk_bytes(chunk_header(static_cast<ChunkKind>(99)), std::vector<char>(16)));
  ReadBack result = read_back(p);
  EXPECT_EQ(model_text(result, "all"), "a 1\n  k 1\n");
  EXPECT_EQ(result.account().damaged_records, 0);
}

TEST(Records, OneThatEndsInTheMiddleIsDamage) {
  for (uint16_t units : {0, 9}) {
    ProfileBuilder p;
    std::vector<char> records;
    append_record(records, RecordKind::kPush, 0, 2, PushRecord{});
    memcpy(records.data() + offsetof(RecordHeader, units), &units, sizeof(units));
    p.add_bytes(chunk_bytes(chunk_header(ChunkKind::kThread), records));
    EXPECT_EQ(read_back(p).account().damaged_records, 1) << units;
  }
}

TEST(Records, PropertiesAreKeysAndValues) {
  ProfileBuilder p;
  p.property("process.command", "./llm --fast");
  p.property("rank.RANK", "3");
  p.define(RecordKind::kProperty, 0, 0, PropertyRecord{{}, 4, 4}, "abcd");  // no value
  ReadBack result = read_back(p);
  EXPECT_EQ(result.processes[0].property("process.command"), "./llm --fast");
  EXPECT_EQ(result.processes[0].rank, 3);
  EXPECT_EQ(result.account().damaged_records, 1);
}

TEST(Records, LossesOfAKindAddUp) {
  ProfileBuilder p;
  for (uint64_t count : {2, 3}) p.define(RecordKind::kLoss, 0, 2, LossRecord{{}, count});
  EXPECT_EQ(read_back(p).processes[0].definitions.losses().at(LossKind::kActivityRecords), 5);
}

TEST(Records, ClockPairsTranslateHostTimes) {
  ProfileBuilder p;
  p.define(RecordKind::kClockPair, 0, 0, ClockPairRecord{{}, 1000, 5000});
  p.define(RecordKind::kClockPair, 0, 0, ClockPairRecord{{}, 2000, 6100});
  ReadBack result = read_back(p);
  const ProcessDefinitions& definitions = result.processes[0].definitions;
  EXPECT_EQ(definitions.realtime(1500), 5500);
  EXPECT_EQ(definitions.realtime(2001), 6101);
  EXPECT_EQ(definitions.realtime(900), 4900);
}

TEST(Records, IdsFarBeyondTheOthersAreDamage) {
  ProfileBuilder p;
  p.define(RecordKind::kString, 0, 0xfffffff0, StringRecord{{}, 1, 0}, "x");
  p.define(RecordKind::kContext, 0, 0xfffffff0, ContextRecord{{}, 0, 1});
  p.define(RecordKind::kContext, 0, 5, ContextRecord{{}, 6, 1});  // a parent after its child
  EXPECT_EQ(read_back(p).account().damaged_records, 3);
}

// ---- versions

TEST(FileHeaders, OtherVersionIsRefused) {
  FileHeader header = usual_header();
  header.version = kVersion + 1;
  EXPECT_THAT(error_of(file_header(header)), HasSubstr("format version 2, this lamina reads version 1"));
}

TEST(FileHeaders, UnknownFeatureIsRefused) {
  FileHeader header = usual_header();
  header.features = 1u << 31;
  EXPECT_THAT(error_of(file_header(header)), HasSubstr("uses features that this lamina does not know"));
}

TEST(FileHeaders, LongerHeaderIsPassedOver) {
  FileHeader header = usual_header();
  header.header_size = sizeof(header) + 24;
  ProfileBuilder p;
  p.thread().push("a").launch(1).pop();
  p.kernel(1, "k", 1);
  std::string chunks = p.bytes().substr(sizeof(header));
  ReadBack result = read_bytes(file_header(header) + std::string(24, 'x') + chunks);
  EXPECT_EQ(model_text(result, "all"), "a 1\n  k 1\n");
  EXPECT_TRUE(result.processes[0].damage.empty());
}

TEST(FileHeaders, ImpossibleSizeIsRefused) {
  FileHeader header = usual_header();
  header.header_size = 8;
  EXPECT_THAT(error_of(file_header(header)), HasSubstr("impossible header size"));
}

TEST(FileHeaders, EmptyShortAndForeignFilesAreRefused) {
  EXPECT_THAT(error_of(""), HasSubstr("the file is empty"));
  EXPECT_THAT(error_of("LAMINA"), HasSubstr("too short for a profile"));
  EXPECT_THAT(error_of(std::string(100, 'x')), HasSubstr("not a Lamina profile"));
}

TEST(FileHeaders, HeaderAloneIsAProfileWithoutAnEnd) {
  ReadBack result = read_bytes(file_header());
  EXPECT_FALSE(result.processes.at(0).ended);
  EXPECT_TRUE(result.report.phases.empty());
}

using ProfileFolder = FolderTest;

TEST_F(ProfileFolder, WithoutFilesIsRefused) {
  EXPECT_THAT(error_of_path(folder_), HasSubstr("no profile in this folder"));
  EXPECT_THAT(error_of_path(folder_ + "/none"), HasSubstr("no such profile"));
}

TEST_F(ProfileFolder, HoldsAFileForEachProcess) {
  for (const char* rank : {"0", "1"}) {
    ProfileBuilder p;
    p.property("rank.RANK", rank);
    p.thread().push("a").launch(1).pop();
    p.kernel(1, "k", 1);
    std::ofstream(folder_ + "/host." + rank + kFileSuffix, std::ios::binary) << p.bytes();
  }
  std::ofstream(folder_ + "/notes.txt") << "not a profile";
  LayerTree tree({});
  EXPECT_EQ(read_profile(folder_, tree).size(), 2);
  EXPECT_EQ(read_profile(folder_, tree, 1).at(0).rank, 1);
  EXPECT_THROW(read_profile(folder_, tree, 2), InputError);
}

}  // namespace
}  // namespace lamina
