#include "report/render/tables.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "report/load/layerwise_json.h"

namespace lamina {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

std::string data_file(const std::string& name) {
  std::ifstream file(std::string(LAMINA_TEST_DATA) + "/" + name, std::ios::binary);
  EXPECT_TRUE(file) << name;
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

LayerReport sample() { return read_layerwise_json(data_file("layerwise-sample.json"), "layerwise-sample.json"); }

std::vector<std::string> lines(const std::string& text) {
  std::vector<std::string> result;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) result.push_back(line);
  return result;
}

// The first row of a summary table with one row of this name.
std::string row_of(const std::string& name, Names names = Names::kCut) {
  return lines(summary_table({{name, 1, 2, 3, {}}}, names)).at(2);
}

std::string spaces(size_t count) { return std::string(count, ' '); }

TEST(Tables, SummaryIsTheGolden) {
  EXPECT_EQ(summary_table(sample().phases.at(0).summary), data_file("layerwise-sample.prefill.summary.txt"));
}

TEST(Tables, ModelIsTheGolden) {
  EXPECT_EQ(model_table(sample().phases.at(0).steps.at(0).model), data_file("layerwise-sample.prefill.model.txt"));
}

TEST(Tables, NoRowsLeaveTheHeader) {
  EXPECT_EQ(lines(summary_table({})).size(), 2u);
  EXPECT_EQ(lines(model_table({})).size(), 2u);
}

TEST(Tables, TextOfExactlyTheWidthIsNotCut) {
  EXPECT_THAT(row_of(std::string(80, 'x')), StartsWith(std::string(80, 'x') + " | "));
  EXPECT_THAT(row_of(std::string(81, 'x')), StartsWith(std::string(77, 'x') + "... | "));
}

TEST(Tables, WidthCountsCharacters) {
  std::string name;
  for (int i = 0; i < 70; ++i) name += "é";
  EXPECT_THAT(row_of(name), StartsWith(name + spaces(10) + " | "));
  for (int i = 0; i < 20; ++i) name += "€";
  EXPECT_THAT(row_of(name), StartsWith(name.substr(0, 2 * 70 + 3 * 7) + "... | "));
}

TEST(Tables, ControlCharactersDoNotBreakTheLine) {
  EXPECT_THAT(row_of("a\nb\tc\x1b[31m\x7f\xc2\x9b"), StartsWith("a b c [31m  " + spaces(68) + " | "));
}

TEST(Tables, BytesThatAreNotUtf8AreReplaced) {
  EXPECT_THAT(row_of("a\xff\xc3"), StartsWith("a\xef\xbf\xbd\xef\xbf\xbd" + spaces(77) + " | "));
  EXPECT_THAT(row_of("\xe2\x82"), StartsWith("\xef\xbf\xbd\xef\xbf\xbd" + spaces(78) + " | "));
}

TEST(Tables, NumbersAreNeverCut) {
  auto row = lines(summary_table({{"n", 123456789012.5, 100, 32, {}}})).at(2);
  EXPECT_THAT(row, HasSubstr(" | 123456789012.50 |       100.00 |           32.00"));
}

TEST(Tables, FullNamesWidenTheColumn) {
  std::string name(200, 'x');
  std::vector<SummaryNode> tree = {{"root", 1, 1, 1, {{name, 1, 1, 1, {}}}}};
  auto table = lines(summary_table(tree, Names::kFull));
  EXPECT_THAT(table.at(3), StartsWith("|- " + name + " | "));
  for (const std::string& line : table) EXPECT_EQ(line.size(), table[0].size());
  EXPECT_EQ(summary_table({{"short", 1, 1, 1, {}}}, Names::kFull), summary_table({{"short", 1, 1, 1, {}}}));
}

TEST(Tables, FullNamesLeaveTheTraceWhole) {
  std::string trace(150, 't');
  EXPECT_THAT(model_table({{"kernel", 0, 1, 1, trace, {}}}, Names::kFull), HasSubstr(trace + "\n"));
}

TEST(Tables, ShortNamesAreOfKernelsOnly) {
  SummaryNode kernel{.name = "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, std::array<char*, 3ul> >(int)",
                     .children = {}, .each = Durations{}};
  std::vector<SummaryNode> tree = {{"Linear(weight=bfloat16[4, 4])", 1, 1, 1, {kernel}}};
  EXPECT_THAT(summary_table(tree, Names::kShort), HasSubstr("\nLinear(weight=bfloat16[4, 4])  "));
  EXPECT_THAT(summary_table(tree, Names::kShort), HasSubstr("\n|- vectorized_elementwise(add, float)  "));
  EXPECT_THAT(summary_table(tree, Names::kCut), HasSubstr("\n|- void at::native::vectorized_elementwise_kernel<4, "));
}

TEST(Tables, ShortNamesOfAModelShortenTraces) {
  std::vector<ModelNode> tree = {{"Linear(a)", 1, 1, 1, "", {{"scale_kernel(float*)", 0, 1, 1, "mul(a) <- forward(b)", {}}}}};
  EXPECT_THAT(model_table(tree, Names::kShort), HasSubstr("\n|- scale  "));
  EXPECT_THAT(model_table(tree, Names::kShort), HasSubstr(" | mul(a) <- forward  "));
  EXPECT_THAT(model_table(tree, Names::kShort), HasSubstr("\nLinear(a)  "));
}

TEST(Tables, KernelsAreARowEach) {
  KernelRow row{"gemm_kernel(float*)", 3, 7.5, 1, 4, 100, {"qkv", "o\nproj"}, {"m/qkv", "m/o"}};
  auto table = lines(kernel_table({row}, {}, Names::kShort));
  ASSERT_EQ(table.size(), 3u);
  EXPECT_EQ(table[2], "gemm" + spaces(56) + " |          3 |         7.50 |       2.50 |       1.00 |       4.00 |        100.00 | gemm          | qkv, o proj" + spaces(29));
  EXPECT_EQ(table[1], std::string(table[2].size(), '='));
  EXPECT_THAT(kernel_table({row}, {}, Names::kFull), HasSubstr("\ngemm_kernel(float*) "));
}

TEST(Tables, PathsAreAColumnOfTheirOwn) {
  std::vector<ModelNode> tree = {{"Model", 1, 2, 100, "", {{"k", 0, 2, 100, "mm(a)", {}}}, "Root.model"}};
  auto plain = lines(model_table(tree));
  auto with_paths = lines(model_table(tree, Names::kCut, Paths::kShown));
  EXPECT_EQ(with_paths.at(0), plain.at(0) + " | path" + spaces(56));
  EXPECT_EQ(with_paths.at(1), plain.at(1) + std::string(63, '='));
  EXPECT_EQ(with_paths.at(2), plain.at(2) + " | Root.model" + spaces(50));
  EXPECT_EQ(with_paths.at(3), plain.at(3) + " | " + spaces(60));
  tree[0].path = std::string(100, 'p');
  EXPECT_THAT(model_table(tree, Names::kFull, Paths::kShown), HasSubstr(" | " + tree[0].path + "\n"));
  EXPECT_THAT(model_table(tree, Names::kCut, Paths::kShown), HasSubstr(" | " + std::string(57, 'p') + "...\n"));
}

TEST(Tables, ADeepTreeIsIndentedByItsDepth) {
  std::vector<SummaryNode> tree = {{"leaf", 1, 1, 1, {}}};
  for (int depth = 0; depth < 400; ++depth) {
    SummaryNode parent{"node", 1, 1, 1, {}};
    parent.children = std::move(tree);
    tree.clear();
    tree.push_back(std::move(parent));
  }
  auto table = lines(summary_table(tree));
  ASSERT_EQ(table.size(), 403u);
  EXPECT_THAT(table.at(5), StartsWith("|--- node"));
  EXPECT_THAT(table.at(402), StartsWith("|" + std::string(76, '-') + "... | "));
}

TEST(Tables, ParentsComeBeforeChildrenAndSiblingsInOrder) {
  std::vector<SummaryNode> tree = {{"a", 1, 1, 1, {{"b", 1, 1, 1, {{"c", 1, 1, 1, {}}}}, {"d", 1, 1, 1, {}}}},
                                   {"e", 1, 1, 1, {}}};
  std::string names;
  for (const std::string& line : lines(summary_table(tree))) names += line.substr(0, line.find("  ")) + ",";
  EXPECT_THAT(names, HasSubstr(",a,|- b,|-- c,|- d,e,"));
}

}  // namespace
}  // namespace lamina
