#include "report/render/trace_json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "report/errors.h"
#include "report/output_stream.h"

namespace lamina {
namespace {

using testing::HasSubstr;
using testing::Not;

class TraceJsonTest : public testing::Test {
 protected:
  std::string finish() {
    json_.finish();
    return text_;
  }
  std::string text_;
  TraceJson json_{[this](std::string_view piece) { text_ += piece; }, {{"profile", "p"}}};
  TimelineEvents events_ = json_.events();
};

TEST_F(TraceJsonTest, IsTheFormat) {
  std::string_view trace = "mm";
  TimelineArg args[] = {{"trace", trace}, {"registers", uint64_t{40}}, {"grid", std::array<int32_t, 3>{1, 2, 3}}};
  events_.process(7, "GPU 0", 2);
  events_.track({7, 9}, "stream 9", 1);
  events_.begin({7, 9}, 1'234'567, {"gemm", "kernel", "mlp", args});
  events_.flow({1, 2}, 3, {7, 9}, 1'234'567);
  events_.end({7, 9}, 1'234'570);
  events_.slice({1, 2}, 0, 4, {"a", "range", {}});
  events_.instant({1, 2}, 3, {"launch", "launch", {}});
  EXPECT_EQ(finish(), R"({"displayTimeUnit":"ns","otherData":{"profile":"p"},
"traceEvents":[
{"ph":"M","pid":7,"tid":0,"ts":0.000,"name":"process_name","args":{"name":"GPU 0"}},
{"ph":"M","pid":7,"tid":0,"ts":0.000,"name":"process_sort_index","args":{"sort_index":2}},
{"ph":"M","pid":7,"tid":9,"ts":0.000,"name":"thread_name","args":{"name":"stream 9"}},
{"ph":"M","pid":7,"tid":9,"ts":0.000,"name":"thread_sort_index","args":{"sort_index":1}},
{"ph":"B","pid":7,"tid":9,"ts":1234.567,"name":"gemm","cat":"kernel","cname":"thread_state_runnable","args":{"trace":"mm","registers":40,"grid":[1,2,3]}},
{"ph":"s","pid":1,"tid":2,"ts":0.003,"id":1,"cat":"launch","name":"launch"},
{"ph":"f","pid":7,"tid":9,"ts":1234.567,"id":1,"cat":"launch","name":"launch","bp":"e"},
{"ph":"E","pid":7,"tid":9,"ts":1234.570},
{"ph":"X","pid":1,"tid":2,"ts":0.000,"dur":0.004,"name":"a","cat":"range"},
{"ph":"i","pid":1,"tid":2,"ts":0.003,"s":"t","name":"launch","cat":"launch"}
]}
)");
}

TEST_F(TraceJsonTest, WithoutEventsItIsOneStill) {
  EXPECT_TRUE(nlohmann::json::parse(finish())["traceEvents"].empty());
}

TEST_F(TraceJsonTest, HostileNames) {
  std::string hostile = "\"},{\\\n\t\x1b[31m\x7f</script>\xff\xc3 \xf0\x9f\x98\x80";
  hostile += '\0';
  TimelineArg arg{"trace", std::string_view(hostile)};
  events_.process(1, hostile, 0);
  events_.track({1, 1}, hostile, 0);
  events_.slice({1, 1}, 0, 1, {hostile, "range", hostile, {&arg, 1}});
  std::string text = finish();
  for (char c : text) EXPECT_TRUE(c == '\n' || static_cast<unsigned char>(c) >= 0x20);
  auto events = nlohmann::json::parse(text)["traceEvents"];
  std::string name = events.back()["name"];
  EXPECT_THAT(name, HasSubstr("\"},{\\\n\t\x1b[31m\x7f</script>"));
  EXPECT_THAT(name, HasSubstr("\xef\xbf\xbd"));  // U+FFFD
  EXPECT_EQ(events.back()["args"]["trace"], name);
  EXPECT_EQ(events[0]["args"]["name"], name);
}

TEST_F(TraceJsonTest, EachLayerHasItsColour) {
  for (std::string_view key : {"a", "b", "a", "(no module)"}) events_.slice({1, 1}, 0, 1, {"k", "kernel", key});
  auto events = nlohmann::json::parse(finish())["traceEvents"];
  EXPECT_EQ(events[0]["cname"], events[2]["cname"]);
  EXPECT_NE(events[0]["cname"], events[1]["cname"]);
  EXPECT_EQ(events[3]["cname"], "generic_work");
}

TEST_F(TraceJsonTest, IsWrittenInPieces) {
  for (int i = 0; i < 10'000; ++i) events_.end({1, 1}, 0);
  EXPECT_GT(text_.size(), 100'000);
  std::string before = text_;
  EXPECT_THAT(finish(), testing::StartsWith(before));
}

// ---- output

class OutputStreamTest : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/lamina_test_XXXXXX";
    folder_ = mkdtemp(name);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::string path(const std::string& name) const { return folder_ + "/" + name; }
  static std::string content(const std::string& path) {
    gzFile file = gzopen(path.c_str(), "rb");  // reads plain files as they are
    std::string text(1u << 20, '\0');
    text.resize(static_cast<size_t>(gzread(file, text.data(), static_cast<unsigned>(text.size()))));
    gzclose(file);
    return text;
  }
  size_t files() const { return static_cast<size_t>(std::distance(std::filesystem::directory_iterator(folder_), {})); }

  std::string folder_;
};

TEST_F(OutputStreamTest, PlainAndGzip) {
  std::string expected;
  for (int i = 0; i < 10'000; ++i) expected += std::to_string(i * 7919);
  for (const char* name : {"a.json", "a.json.gz"}) {
    OutputStream output(path(name), false);
    output.write(std::string_view(expected).substr(0, 100));
    output.write(std::string_view(expected).substr(100));
    output.finish();
    EXPECT_EQ(content(path(name)), expected) << name;
  }
  EXPECT_LT(std::filesystem::file_size(path("a.json.gz")), expected.size() * 3 / 4);
  std::ifstream file(path("a.json.gz"), std::ios::binary);
  EXPECT_EQ(file.get(), 0x1f);
}

TEST_F(OutputStreamTest, AFileIsNotReplacedUnasked) {
  std::ofstream(path("a")) << "before";
  EXPECT_THROW(OutputStream(path("a"), false), UsageError);
  {
    OutputStream output(path("a"), true);
    output.write("after");
    EXPECT_EQ(content(path("a")), "before");
    output.finish();
  }
  EXPECT_EQ(content(path("a")), "after");
  EXPECT_EQ(files(), 1);
}

TEST_F(OutputStreamTest, WhatIsNotFinishedIsGone) {
  std::ofstream(path("a")) << "before";
  for (const char* name : {"a", "b.gz"}) OutputStream(path(name), true).write("half");
  EXPECT_EQ(content(path("a")), "before");
  EXPECT_EQ(files(), 1);
}

TEST_F(OutputStreamTest, AMissingFolder) { EXPECT_THROW(OutputStream(path("none/a"), false), std::runtime_error); }

TEST_F(OutputStreamTest, DevicesAreNotRemoved) {
  OutputStream output("/dev/null", true);
  output.write("x");
  output.finish();
  EXPECT_TRUE(std::filesystem::is_character_file("/dev/null"));
}

}  // namespace
}  // namespace lamina
