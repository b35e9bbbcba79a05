#include "report/load/report_context.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "read_back.h"

namespace lamina {
namespace {

nlohmann::ordered_json context_of(ProfileBuilder& profile) { return report_context(read_back(profile).processes); }

TEST(ReportContext, ValuesOfTheUserAndOfMarksAreTaken) {
  ProfileBuilder p;
  p.property("context", "{\"batch_size\": 4, \"model\": \"m\", \"lamina\": 1}");
  p.thread().mark("lamina:context {\"prompt_len\": 7}");
  nlohmann::ordered_json context = context_of(p);
  EXPECT_EQ(context["batch_size"], 4);
  EXPECT_EQ(context["prompt_len"], 7);
  EXPECT_EQ(context["engine_args"]["model"], "m");
  EXPECT_TRUE(context["lamina"]["processes"].is_array());
}

TEST(ReportContext, MarkThatIsNoJsonObjectIsPassedOver) {
  for (const char* mark :
       {"lamina:context ", "lamina:context {", "lamina:context [1]", "lamina:context {\"a\": nan}"}) {
    ProfileBuilder p;
    p.thread().mark(mark);
    EXPECT_EQ(context_of(p)["batch_size"], nullptr) << mark;
  }
}

TEST(ReportContext, DeepJsonIsPassedOver) {
  constexpr size_t kDepth = 30'000;
  ProfileBuilder p;
  p.property("context", "{\"a\":" + std::string(kDepth, '[') + std::string(kDepth, ']') + "}");
  p.thread().mark("lamina:context {\"b\":" + std::string(kDepth, '[') + std::string(kDepth, ']') + "}");
  nlohmann::ordered_json context = context_of(p);
  EXPECT_FALSE(context.contains("a"));
  EXPECT_FALSE(context.contains("b"));
}

}  // namespace
}  // namespace lamina
