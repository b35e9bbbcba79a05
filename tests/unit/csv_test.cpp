#include "report/render/csv.h"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

#include "report/errors.h"
#include "report/output.h"

namespace lamina {
namespace {

TEST(Csv, SummaryHasAnIndexTheEntryDepthAndPath) {
  std::vector<SummaryNode> tree = {{"m", 3, 100, 2, {{"k", 1.5, 50.25, 4, {}}}}, {"n", 0, 0, 0, {}}};
  EXPECT_EQ(summary_csv(tree),
            ",name,cuda_time_us,pct_cuda_time,invocations,depth,path\r\n"
            "0,m,3.0,100.0,2,0,m\r\n"
            "1,k,1.5,50.25,4,1,m/k\r\n"
            "2,n,0.0,0.0,0,0,n\r\n");
}

TEST(Csv, ModelHasInstancePathsOfModules) {
  std::vector<ModelNode> tree = {{"M", 1, 2, 100, "", {{"k", 0, 2, 100, "mm(a)", {}}}, "Root.model"}};
  EXPECT_EQ(model_csv(tree),
            ",name,cpu_time_us,cuda_time_us,pct_cuda_time,trace,depth,path\r\n"
            "0,M,1.0,2.0,100.0,,0,Root.model\r\n"
            "1,k,0.0,2.0,100.0,mm(a),1,Root.model/k\r\n");
}

TEST(Csv, NoRowsLeaveTheHeaders) {
  EXPECT_EQ(summary_csv({}), ",name,cuda_time_us,pct_cuda_time,invocations,depth,path\r\n");
  EXPECT_EQ(model_csv({}), ",name,cpu_time_us,cuda_time_us,pct_cuda_time,trace,depth,path\r\n");
  EXPECT_EQ(kernel_csv({}, {}), ",name,count,total_us,mean_us,min_us,max_us,pct_cuda_time,group,short_name,layers\r\n");
}

// The name of the only row, as it stands in the file.
std::string name_field(const std::string& name) {
  std::string csv = summary_csv({{name, 1, 1, 1, {}}});
  size_t begin = csv.find("\r\n0,") + 4;
  return csv.substr(begin, csv.find(",1.0,", begin) - begin);
}

TEST(Csv, FieldsAreQuotedWhereTheyMust) {
  EXPECT_EQ(name_field("a b;'<>"), "a b;'<>");
  EXPECT_EQ(name_field("f(a, b)"), "\"f(a, b)\"");
  EXPECT_EQ(name_field("say \"x\""), "\"say \"\"x\"\"\"");
  EXPECT_EQ(name_field("a\r\nb\x1b[31m"), "a  b [31m");
}

TEST(Csv, BytesThatAreNotUtf8AreReplaced) { EXPECT_EQ(name_field("a\xff"), "a\xef\xbf\xbd"); }

TEST(Csv, KernelsHaveBothNamesAndTheirLayers) {
  KernelRow row{"nvjet_sm90_tst_64x8_64x16_2x1_v_bz_TNT", 2, 6, 2, 4, 100, {"a", "b"}, {"m/a", "m/b"}};
  EXPECT_EQ(kernel_csv({row}, {}),
            ",name,count,total_us,mean_us,min_us,max_us,pct_cuda_time,group,short_name,layers\r\n"
            "0,nvjet_sm90_tst_64x8_64x16_2x1_v_bz_TNT,2,6.0,3.0,2.0,4.0,100.0,gemm,\"nvjet_sm90(bfloat16, 64x8x64, TNT)\",m/a; m/b\r\n");
}

TEST(Csv, ADeepTreeIsAllThere) {
  std::vector<SummaryNode> tree = {{"k", 1, 1, 1, {}}};
  for (int depth = 0; depth < 400; ++depth) {
    SummaryNode parent{"n", 1, 1, 1, {}};
    parent.children = std::move(tree);
    tree = {};
    tree.push_back(std::move(parent));
  }
  EXPECT_NE(summary_csv(tree).find("\r\n400,k,1.0,1.0,1,400,n/"), std::string::npos);
}

// ---- several files

std::string text_of(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

class OutputFiles : public testing::Test {
 protected:
  std::string path(const std::string& name) {
    return testing::TempDir() + "/" + testing::UnitTest::GetInstance()->current_test_info()->name() + "-" + name;
  }
  void SetUp() override {
    for (const char* name : {"a", "b"}) remove(path(name).c_str());
  }
};

TEST_F(OutputFiles, AreWrittenTogether) {
  write_files({{path("a"), "1"}, {path("b"), "2"}}, false);
  EXPECT_EQ(text_of(path("a")) + text_of(path("b")), "12");
}

TEST_F(OutputFiles, AreNotBegunWhereOneIsThere) {
  std::ofstream(path("b")) << "mine";
  EXPECT_THROW(write_files({{path("a"), "1"}, {path("b"), "2"}}, false), UsageError);
  EXPECT_FALSE(std::ifstream(path("a")));
  EXPECT_EQ(text_of(path("b")), "mine");
  write_files({{path("a"), "1"}, {path("b"), "2"}}, true);
  EXPECT_EQ(text_of(path("a")) + text_of(path("b")), "12");
}

TEST_F(OutputFiles, AreNotBegunWhereOneHasNoFolder) {
  EXPECT_THROW(write_files({{path("a"), "1"}, {path("no") + "/folder/b", "2"}}, false), std::runtime_error);
  EXPECT_FALSE(std::ifstream(path("a")));
}

TEST_F(OutputFiles, ThatAreNewGoWhenALaterOneFails) {
  std::string twice = path("a");
  EXPECT_THROW(write_files({{twice, "1"}, {twice, "2"}}, false), UsageError);
  EXPECT_FALSE(std::ifstream(twice));
}

}  // namespace
}  // namespace lamina
