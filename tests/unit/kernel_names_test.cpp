// Readable names and groups of kernels. Most expectations are in tests/data/kernel_names.tsv: group, short name, name.
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <vector>

#include "report/errors.h"
#include "report/names/demangled.h"
#include "report/names/kernel_groups.h"
#include "report/names/kernel_name.h"
#include "report/names/trace_name.h"

namespace lamina {
namespace {

struct Expected {
  std::string group, short_name, name;
};

std::vector<Expected> expectations() {
  std::ifstream file(std::string(LAMINA_TEST_DATA) + "/kernel_names.tsv");
  std::vector<Expected> rows;
  for (std::string line; std::getline(file, line);) {
    std::istringstream fields(line);
    Expected& row = rows.emplace_back();
    std::getline(std::getline(std::getline(fields, row.group, '\t'), row.short_name, '\t'), row.name);
  }
  return rows;
}

TEST(KernelNames, OfRealProfilesAreReadable) {
  std::vector<Expected> rows = expectations();
  ASSERT_GT(rows.size(), 150u);
  for (const Expected& row : rows) EXPECT_EQ(short_kernel_name(row.name), row.short_name) << row.name;
}

TEST(KernelGroups, OfRealProfilesAreTold) {
  KernelGroups groups;
  for (const Expected& row : expectations()) EXPECT_EQ(groups.group_of(row.name), row.group) << row.name;
}

TEST(KernelNames, CopiesStay) {
  for (const char* name : {"Memcpy HtoD (Pinned -> Device)", "Memset (Device)", "[CUDA memcpy HtoD]"})
    EXPECT_EQ(short_kernel_name(name), name);
}

TEST(KernelNames, OfAnyTextAreNeverEmpty) {
  for (const char* name : {"f",
                           "kernel",
                           "_kernel",
                           "Kernel",
                           "<",
                           ">",
                           "(",
                           ")",
                           "::",
                           "a::",
                           "::b",
                           "void ",
                           "void",
                           "f<",
                           "f<g<(",
                           "{",
                           "{lambda(",
                           "operator()",
                           "(anonymous namespace)",
                           "(anonymous namespace)::",
                           "a,b",
                           "nvjet_",
                           "nvjet",
                           "nccl",
                           "ncclKernel_",
                           "triton__fused_",
                           "cutlass::device_kernel<",
                           "cutlass::Kernel2<>(",
                           "void at::native::elementwise_kernel<128, 4, ",
                           "f<>>>>()",
                           "fmhaKernel_",
                           "kernel_cutlass_kernel_object_at",
                           "flash::flash_fwd_kernel<Flash_fwd_kernel_traits<x, y, z>>()"}) {
    EXPECT_NE(short_kernel_name(name), "") << name;
  }
  EXPECT_EQ(short_kernel_name(""), "");
}

TEST(KernelNames, MayNestWithoutEnd) {
  for (std::string level : {"at::native::gpu_kernel_impl<", "cutlass::device_kernel<", "flash::enable_sm90<", "f<", "a::", "(", "{"}) {
    std::string name = "void at::native::elementwise_kernel<4, ";
    for (int i = 0; i < 20000; ++i) name += level;
    EXPECT_NE(short_kernel_name(name), "");
  }
}

TEST(KernelNames, CutOnesGiveWhatIsLeft) {
  std::string name = "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, std::array<char*, 3ul> >(int)";
  EXPECT_EQ(short_kernel_name(name), "vectorized_elementwise(add, float)");
  for (size_t size = 1; size < name.size(); ++size) EXPECT_NE(short_kernel_name(name.substr(0, size)), "") << size;
  EXPECT_EQ(short_kernel_name(name.substr(0, 90)), "vectorized_elementwise(add, float)");
}

TEST(Demangled, PartsHaveArgumentsAndParameters) {
  auto parts = name_parts("void (anonymous namespace)::a::f<int, g<4>>(char*, h<(x)1>)::{lambda(float)#1}::operator()() const");
  ASSERT_EQ(parts.size(), 4u);
  EXPECT_EQ(parts[0].name, "a");
  EXPECT_EQ(parts[1].name, "f");
  EXPECT_EQ(parts[1].arguments, "int, g<4>");
  EXPECT_EQ(parts[1].parameters, "char*, h<(x)1>");
  EXPECT_EQ(parts[2].name, "{lambda(float)#1}");
  EXPECT_EQ(parts[3].name, "operator()");
}

TEST(Demangled, ReturnTypesAreLeftOut) {
  EXPECT_EQ(name_parts("std::enable_if<((8)>(0))&&x<y>::value, void>::type vllm::f<c, 8>(d)").at(0).name, "vllm");
  EXPECT_EQ(name_parts("unsigned int").at(0).name, "unsigned int");
}

TEST(Demangled, NumbersMayBeCast) {
  EXPECT_EQ(number_of("4"), 4);
  EXPECT_EQ(number_of("4ul"), 4);
  EXPECT_EQ(number_of("(int)128"), 128);
  EXPECT_EQ(number_of("(a::Mode)1"), 1);
  for (const char* other : {"", "x", "4x", "float", "(int)", "-2"}) EXPECT_LT(number_of(other), 0) << other;
}

TEST(TraceNames, OuterOpsLoseTheirInputs) {
  EXPECT_EQ(short_trace("mm(bfloat16[4, 4096], b) <- linear(x(1)) <- Linear"), "mm(bfloat16[4, 4096], b) <- linear <- Linear");
  for (const char* trace : {"", "mm(a)", "mm", " <- ", "a <- "}) EXPECT_EQ(short_trace(trace), trace);
}

// ---- groups

std::string file_of(const std::string& text) {
  std::string path = testing::TempDir() + "/groups-" + testing::UnitTest::GetInstance()->current_test_info()->name() + ".json";
  std::ofstream(path) << text;
  return path;
}

TEST(KernelGroups, GlobsAreLikeTheWholeName) {
  for (auto [glob, text] : std::vector<std::pair<const char*, const char*>>{{"a", "a"},
                                                                            {"*", ""},
                                                                            {"*", "abc"},
                                                                            {"a*", "a"},
                                                                            {"*b*", "abc"},
                                                                            {"a?c", "abc"},
                                                                            {"*ab", "aab"},
                                                                            {"a*b*c", "axbxbc"},
                                                                            {"**", "x"},
                                                                            {"*a*", "*a*"}}) {
    EXPECT_TRUE(matches_glob(glob, text)) << glob << " " << text;
  }
  for (auto [glob, text] : std::vector<std::pair<const char*, const char*>>{
           {"", "a"}, {"a", ""}, {"a", "ab"}, {"a?", "a"}, {"*b", "abc"}, {"a*b*c", "acb"}, {"?", ""}}) {
    EXPECT_FALSE(matches_glob(glob, text)) << glob << " " << text;
  }
}

TEST(KernelGroups, OfAFileComeBeforeTheBuiltIn) {
  KernelGroups groups =
      KernelGroups::from_file(file_of(R"([{"group": "mine", "names": ["my_*", "*NVJET*"]}, {"group": "late", "names": ["my_kernel"]}])"));
  EXPECT_EQ(groups.group_of("My_kernel"), "mine");
  EXPECT_EQ(groups.group_of("nvjet_sm90_tst_64x8"), "mine");
  EXPECT_EQ(groups.group_of("rms_norm_kernel"), "norm");
  EXPECT_EQ(groups.group_of("???"), "other");
  KernelGroups copy = groups;
  EXPECT_EQ(copy.group_of("my_kernel"), "mine");
}

std::string error_of(const std::string& text) {
  try {
    KernelGroups::from_file(file_of(text));
  } catch (const InputError& error) {
    std::string message = error.what();
    return message.substr(message.find(".json: ") + 7);
  }
  return "none";
}

TEST(KernelGroups, ErrorsNameThePlace) {
  EXPECT_EQ(error_of("{}"), R"(not an array of rows such as {"group": "gemm", "names": ["*gemm*"]})");
  EXPECT_EQ(error_of("[1]"), "row 1 is not an object");
  EXPECT_EQ(error_of(R"([{"names": []}])"), "row 1.group is missing");
  EXPECT_EQ(error_of(R"([{"group": "a", "names": []}, {"group": 1, "names": []}])"), "row 2.group is not a string");
  EXPECT_EQ(error_of(R"([{"group": "", "names": []}])"), "row 1.group is empty");
  EXPECT_EQ(error_of(R"([{"group": "a"}])"), "row 1.names is missing");
  EXPECT_EQ(error_of(R"([{"group": "a", "names": "b"}])"), "row 1.names is not an array");
  EXPECT_EQ(error_of(R"([{"group": "a", "names": ["b", 2]}])"), "row 1.names[1] is not a string");
  EXPECT_EQ(error_of(R"([{"group": "a", "names": [], "nmes": []}])"), "row 1.nmes is not known: a row has group and names");
  EXPECT_NE(error_of("[").find("line 1"), std::string::npos) << error_of("[");
  EXPECT_EQ(error_of("[]"), "none");
  EXPECT_THROW(KernelGroups::from_file("/nowhere/groups.json"), InputError);
  EXPECT_THROW(KernelGroups::from_file("/"), InputError);
}

}  // namespace
}  // namespace lamina
