#include "report/load/layerwise_json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>

#include "report/errors.h"

namespace lamina {
namespace {

using nlohmann::ordered_json;
using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

// ---- comparison, printing and making of reports

ordered_json text_of(const std::vector<SummaryNode>& nodes) {
  ordered_json list = ordered_json::array();
  for (const auto& n : nodes)
    list.push_back({n.name, n.cuda_time_us, n.pct_cuda_time, n.invocations, text_of(n.children)});
  return list;
}

ordered_json text_of(const std::vector<ModelNode>& nodes) {
  ordered_json list = ordered_json::array();
  for (const auto& n : nodes) {
    list.push_back({n.name, n.cpu_time_us, n.cuda_time_us, n.pct_cuda_time, n.trace, text_of(n.children), n.path});
  }
  return list;
}

// Every field of a report, not by way of the writer.
std::string text_of(const LayerReport& report) {
  ordered_json text = {{"context", *report.context}};
  for (const PhaseReport& phase : report.phases) {
    ordered_json steps = ordered_json::array();
    for (const StepReport& s : phase.steps)
      steps.push_back({s.number, *s.metadata, text_of(s.summary), text_of(s.model)});
    text["phases"].push_back({phase.name, phase.step_count, text_of(phase.summary), steps});
  }
  return text.dump(1);
}

LayerReport read(const std::string& text) { return read_layerwise_json(text, "file.json"); }

LayerReport through_json(const LayerReport& report) { return read(write_layerwise_json(report).dump()); }

StepReport step(uint32_t number, double us) {
  StepReport result;
  result.number = number;
  (*result.metadata)["num_running_seqs"] = number;
  result.summary = {{"Model", us, 100, 1, {{"kernel", us, 100, 2, {}}}}};
  result.model = {{"Model", 7.5, us, 100, "", {{"kernel", 0, us, 100, "mm(a) <- linear(b)", {}}}, "Model#2"}};
  return result;
}

PhaseReport phase(const std::string& name, std::vector<StepReport> steps) {
  PhaseReport result{.name = name, .step_count = steps.size()};
  result.steps = std::move(steps);
  double us = 0;
  for (const StepReport& s : result.steps) us += s.summary[0].cuda_time_us;
  auto count = static_cast<double>(result.steps.size());
  result.summary = {{"Model", us, 100, count, {{"kernel", us, 100, 2 * count, {}}}}};
  return result;
}

LayerReport report_of(std::vector<PhaseReport> phases) {
  LayerReport report;
  *report.context = {{"python_version", "3.11"},
                    {"engine_args", {{"model", "toy"}, {"tensor_parallel_size", 1}}},
                    {"prompt_len", nullptr},
                    {"batch_size", 4},
                    {"num_steps", 2},
                    {"complete_num_requests_per_step", nullptr}};
  report.phases = std::move(phases);
  return report;
}

PhaseReport with_empty_step(PhaseReport of, uint32_t number) {
  StepReport& empty = of.steps.emplace_back();
  empty.number = number;
  std::ranges::sort(of.steps, {}, &StepReport::number);
  of.step_count = of.steps.size();
  return of;
}

std::vector<std::string> keys(const ordered_json& object) {
  std::vector<std::string> result;
  for (const auto& [key, value] : object.items()) result.push_back(key);
  return result;
}

std::vector<std::string> phase_names(const LayerReport& report) {
  std::vector<std::string> names;
  for (const PhaseReport& p : report.phases) names.push_back(p.name);
  return names;
}

// As vLLM's example programs have written them: the first ones flat, today's with the engine's arguments apart.
constexpr const char* kFlatContext =
    R"({"python_version": "3.10.12", "torch_version": "2.3.0", "torch_cuda_version": "12.1", "cuda_devices": "[]",
        "model": "toy", "tokenizer": null, "model_revision": null, "quantization": null, "max_model_len": null,
        "max_num_batched_tokens": 8192, "prompt_len": 512, "output_len": 3, "batch_size": 4, "dtype": "auto",
        "tensor_parallel_size": 2, "allow_cuda_graphs": false})";
constexpr const char* kNestedContext =
    R"({"python_version": "3.12.3", "torch_version": "2.7.0", "torch_cuda_version": "12.6", "cuda_devices": "[]",
        "engine_args": {"model": "toy", "tensor_parallel_size": 2, "enforce_eager": true}, "prompt_len": 512, "batch_size": 4,
        "num_steps": null, "complete_num_requests_per_step": 8, "save_chrome_traces_folder": null})";

// A document with the given phases, each with one root of `us` microseconds.
std::string document(const std::vector<std::pair<std::string, int>>& steps, const std::string& context = "{}") {
  std::string text = R"({"context": )" + context;
  for (const auto& [key, us] : steps) {
    std::string times = R"("cuda_time_us": )" + std::to_string(us) + R"(, "pct_cuda_time": 100)";
    text += ",\"" + key + R"(": {"summary_stats": [{"entry": {"name": "A", )" + times +
            R"(, "invocations": 1}, "children": []}], "model_stats": [{"entry": {"name": "A", "cpu_time_us": 1, )" +
            times + R"(, "trace": ""}, "children": []}]})";
  }
  return text + "}";
}

std::string error_of(const std::string& text) {
  try {
    read(text);
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), StartsWith("file.json: "));
    EXPECT_LT(strlen(error.what()), 500u);
    return error.what();
  }
  ADD_FAILURE() << "accepted: " << text.substr(0, 200);
  return "";
}

// The sample with the value at `pointer` replaced, or erased when it is null.
std::string damaged(const std::string& pointer, const std::optional<ordered_json>& value) {
  std::string text =
      write_layerwise_json(report_of({phase("prefill", {step(1, 10)}), phase("decode", {step(1, 1), step(2, 2)})}))
          .dump();
  ordered_json json = ordered_json::parse(text);
  ordered_json::json_pointer place(pointer);
  if (value) {
    json[place] = *value;
  } else {
    json[place.parent_pointer()].erase(place.back());
  }
  return json.dump();
}

// ---- reading

TEST(ReadLayerwiseJson, ReadsTheSample) {
  std::ifstream file(LAMINA_TEST_DATA "/layerwise-sample.json");
  std::ostringstream text;
  text << file.rdbuf();
  LayerReport report = read(text.str());
  EXPECT_EQ((*report.context)["engine_args"]["model"], "toy/Llama-1L");
  ASSERT_THAT(phase_names(report), ElementsAre("prefill"));
  const PhaseReport& prefill = report.phases[0];
  EXPECT_EQ(prefill.step_count, 1u);
  ASSERT_EQ(prefill.summary.size(), 2u);
  EXPECT_DOUBLE_EQ(prefill.summary[0].pct_cuda_time, 90.9504);  // as the file has it
  EXPECT_EQ(prefill.summary[0].children[0].children[0].invocations, 32);
  EXPECT_DOUBLE_EQ(prefill.steps[0].model[0].cpu_time_us, 4321.123);
  EXPECT_THAT(prefill.steps[0].model[0].children[0].children[0].trace, StartsWith("mm("));
}

TEST(ReadLayerwiseJson, OldFilesHaveNeitherMetadataNorNumbers) {
  LayerReport report = read(document({{"prefill", 10}, {"decode", 5}}, R"({"model": "toy", "batch_size": 4})"));
  ASSERT_THAT(phase_names(report), ElementsAre("prefill", "decode"));
  EXPECT_EQ(report.phases[1].step_count, 1u);
  EXPECT_EQ(report.phases[1].steps[0].number, 1u);
  EXPECT_EQ(report.phases[1].steps[0].metadata->dump(), R"({"num_running_seqs":null})");
  EXPECT_EQ((*report.context)["model"], "toy");
}

// vLLM's first writers: `decode` is the first step, `decode_1` the second.
TEST(ReadLayerwiseJson, OldFilesCallTheFirstDecodeStepDecode) {
  LayerReport report = read(document({{"prefill", 10}, {"decode", 5}, {"decode_1", 6}, {"decode_2", 7}}, kFlatContext));
  ASSERT_THAT(phase_names(report), ElementsAre("prefill", "decode"));
  const PhaseReport& decode = report.phases[1];
  ASSERT_EQ(decode.steps.size(), 3u);
  for (uint32_t i = 0; i < 3; ++i) {
    EXPECT_EQ(decode.steps[i].number, i + 1);
    EXPECT_EQ(decode.steps[i].summary.at(0).cuda_time_us, 5 + i);
  }
}

// Two calls of a root module: vLLM's writer has the same sum twice.
TEST(ReadLayerwiseJson, ARepeatedRootIsOne) {
  ordered_json json = ordered_json::parse(document({{"prefill", 30}}));
  ordered_json& roots = json["prefill"]["summary_stats"];
  roots.push_back(roots[0]);
  roots.push_back(roots[0]);
  roots[2]["entry"]["cuda_time_us"] = 31;  // another one, whatever it is
  std::vector<SummaryNode> summary = read(json.dump()).phases.at(0).summary;
  ASSERT_EQ(summary.size(), 2u);
  EXPECT_EQ(summary[0].cuda_time_us, 30);
  EXPECT_EQ(summary[1].cuda_time_us, 31);
}

TEST(ReadLayerwiseJson, ReadsContextsOfBothShapes) {
  EXPECT_EQ((*read(document({{"prefill", 1}}, kFlatContext)).context)["allow_cuda_graphs"], false);
  EXPECT_EQ((*read(document({{"prefill", 1}}, kNestedContext)).context)["engine_args"]["enforce_eager"], true);
}

// No decode at all, no time at all, nothing at all.
TEST(ReadLayerwiseJson, ReadsFilesWithLittleInThem) {
  EXPECT_THAT(phase_names(read(document({{"prefill", 7}}, kNestedContext))), ElementsAre("prefill"));
  PhaseReport idle = read(document({{"decode_1", 0}, {"decode_2", 0}})).phases.at(0);
  EXPECT_EQ(idle.summary.at(0).cuda_time_us, 0);
  EXPECT_EQ(idle.summary.at(0).pct_cuda_time, 0);
  LayerReport empty = read(R"({"context": {}, "prefill": {"metadata": {}, "summary_stats": [], "model_stats": []}})");
  EXPECT_EQ(empty.phases.at(0).step_count, 1u);
  EXPECT_TRUE(empty.phases.at(0).summary.empty());
}

TEST(ReadLayerwiseJson, NumberedKeysAreStepsOfOnePhase) {
  LayerReport report = read(document({{"decode_10", 1}, {"prefill", 7}, {"decode_2", 2}, {"decode_1", 3}}));
  ASSERT_THAT(phase_names(report), ElementsAre("decode", "prefill"));
  const PhaseReport& decode = report.phases[0];
  ASSERT_EQ(decode.steps.size(), 3u);
  EXPECT_EQ(decode.steps[0].number, 1u);
  EXPECT_EQ(decode.steps[2].number, 10u);
  EXPECT_DOUBLE_EQ(decode.summary.at(0).cuda_time_us, 6);
  EXPECT_DOUBLE_EQ(decode.summary.at(0).invocations, 3);
}

TEST(ReadLayerwiseJson, WhatIsNoStepNumberIsPartOfTheName) {
  LayerReport report =
      read(document({{"fp_8", 1}, {"a_01", 1}, {"b_", 1}, {"_3", 1}, {"c_99999999999999999999", 1}, {"7", 1}}));
  EXPECT_THAT(phase_names(report), ElementsAre("fp", "a_01", "b_", "_3", "c_99999999999999999999", "7"));
  EXPECT_EQ(report.phases[0].steps[0].number, 8u);
}

TEST(ReadLayerwiseJson, TheSumOfStepsIsMergedByPathWithNewPercentages) {
  ordered_json json = ordered_json::parse(document({{"decode_1", 30}, {"decode_2", 10}}));
  json["decode_2"]["summary_stats"].push_back(json["decode_2"]["summary_stats"][0]);
  json["decode_2"]["summary_stats"][1]["entry"]["name"] = "B";
  PhaseReport decode = read(json.dump()).phases.at(0);
  ASSERT_EQ(decode.summary.size(), 2u);
  EXPECT_EQ(decode.summary[0].name, "A");
  EXPECT_DOUBLE_EQ(decode.summary[0].pct_cuda_time, 80);
  EXPECT_DOUBLE_EQ(decode.summary[1].pct_cuda_time, 20);
}

TEST(ReadLayerwiseJson, ExtraKeysAreLeftAlone) {
  ordered_json json = ordered_json::parse(document({{"prefill", 1}}, R"({"lamina": {"ranks": 2}})"));
  json["prefill"]["summary_stats"][0]["lamina"] = {{"wall_us", 3}};
  json["prefill"]["summary_stats"][0]["entry"]["more"] = true;
  LayerReport report = read(json.dump());
  EXPECT_EQ((*report.context)["lamina"]["ranks"], 2);
}

// ---- hostile documents

TEST(ReadLayerwiseJson, RefusesWhatIsNotJson) {
  EXPECT_THAT(error_of(""), HasSubstr("not JSON: line 1, column 1"));
  EXPECT_THAT(error_of("LAMINA\r\n"), HasSubstr("not JSON: line 1"));
  EXPECT_THAT(error_of("{\"context\": {}"), HasSubstr("not JSON"));
  EXPECT_THAT(error_of("{} {}"), HasSubstr("not JSON"));
  EXPECT_THAT(error_of(document({{"prefill", 1}}).replace(20, 1, "\xff")), HasSubstr("not JSON"));
  EXPECT_THAT(error_of("{\"context\": {\"a\": \"\xff\xfe\"}}"), HasSubstr("not JSON"));
  EXPECT_THAT(error_of("\"" + std::string(100000, 'x')), HasSubstr("not JSON"));
  EXPECT_THAT(error_of("{\"context\": {}, \"prefill\": NaN}"), HasSubstr("not JSON"));
  EXPECT_THAT(error_of("{\"context\": {\"a\": 1e999}}"), HasSubstr("not JSON"));
}

TEST(ReadLayerwiseJson, RefusesOtherDocuments) {
  EXPECT_THAT(error_of("[]"), EndsWith("the document is not an object"));
  EXPECT_THAT(error_of("null"), EndsWith("the document is not an object"));
  EXPECT_THAT(error_of("{}"), EndsWith("context is missing"));
  EXPECT_THAT(error_of(R"({"context": 1})"), EndsWith("context is not an object"));
  EXPECT_THAT(error_of(R"({"context": {}, "traceEvents": []})"), EndsWith("traceEvents is not an object"));
  EXPECT_THAT(error_of(R"({"context": {}, "a": {}})"), EndsWith("a.summary_stats is missing"));
  EXPECT_THAT(error_of(R"({"context": {}, "": {}})"), HasSubstr("without a name"));
}

TEST(ReadLayerwiseJson, SaysWhereAFieldIsWrong) {
  const std::string node = "/decode_2/summary_stats/0/children/0";
  const std::string where = "file.json: decode_2.summary_stats[0].children[0]";
  EXPECT_EQ(error_of(damaged(node + "/entry/name", 7)), where + ".entry.name is not a string");
  EXPECT_EQ(error_of(damaged(node + "/entry/name", std::nullopt)), where + ".entry.name is missing");
  EXPECT_EQ(error_of(damaged(node + "/entry/invocations", "1")), where + ".entry.invocations is not a number");
  EXPECT_EQ(error_of(damaged(node + "/entry/cuda_time_us", nullptr)), where + ".entry.cuda_time_us is not a number");
  EXPECT_EQ(error_of(damaged(node + "/entry", ordered_json::array())), where + ".entry is not an object");
  EXPECT_EQ(error_of(damaged(node + "/entry", std::nullopt)), where + ".entry is missing");
  EXPECT_EQ(error_of(damaged(node + "/children", std::nullopt)), where + ".children is missing");
  EXPECT_EQ(error_of(damaged(node + "/children", 1)), where + ".children is not an array");
  EXPECT_EQ(error_of(damaged(node, "node")), where + " is not an object");
  EXPECT_THAT(error_of(damaged("/prefill/model_stats/0/entry/trace", nullptr)), EndsWith("trace is not a string"));
  EXPECT_THAT(error_of(damaged("/prefill/model_stats/0/lamina", 1)), EndsWith("[0].lamina is not an object"));
  EXPECT_THAT(error_of(damaged("/prefill/model_stats/0/lamina/path", 1)), EndsWith("lamina.path is not a string"));
  EXPECT_THAT(error_of(damaged("/prefill/model_stats", std::nullopt)), EndsWith("prefill.model_stats is missing"));
  EXPECT_THAT(error_of(damaged("/prefill/metadata", 1)), EndsWith("prefill.metadata is not an object"));
}

TEST(ReadLayerwiseJson, RefusesNumbersThatAreNoTimes) {
  for (const ordered_json& number : {ordered_json(1e300), ordered_json(-1), ordered_json(UINT64_MAX)}) {
    EXPECT_THAT(error_of(damaged("/prefill/model_stats/0/entry/cuda_time_us", number)), HasSubstr("is out of range"));
  }
}

TEST(ReadLayerwiseJson, RefusesKeysAndStepsThatComeTwice) {
  EXPECT_THAT(error_of(document({{"prefill", 1}, {"prefill", 1}})), EndsWith("key 'prefill' comes twice"));
  EXPECT_THAT(error_of(document({{"warmup", 1}, {"warmup_1", 1}})), EndsWith("step 1 of phase 'warmup' twice"));
  std::string many = "{";
  for (int i = 0; i < 50; ++i) many += "\"k" + std::to_string(i) + "\": 0,";
  EXPECT_THAT(error_of(many + "\"k40\": 0}"), EndsWith("key 'k40' comes twice"));
  EXPECT_THAT(error_of(many + "\"k3\": 0}"), EndsWith("key 'k3' comes twice"));
}

TEST(ReadLayerwiseJson, RefusesDeepNesting) {
  std::string node = R"({"entry":{"name":"A","cuda_time_us":1,"pct_cuda_time":1,"invocations":1},"children":[)";
  auto nested = [&](int levels) {
    std::string text = R"({"context":{},"all":{"model_stats":[],"summary_stats":[)";
    for (int i = 0; i < levels; ++i) text += node;
    for (int i = 0; i < levels; ++i) text += "]}";
    return text + "]}}";
  };
  EXPECT_EQ(read(nested(400)).phases.size(), 1u);
  EXPECT_THAT(error_of(nested(100000)), HasSubstr("nested deeper than"));
  EXPECT_THAT(error_of(std::string(1000000, '[')), HasSubstr("nested deeper than"));
  std::string objects;
  for (int i = 0; i < 100000; ++i) objects += "{\"a\":";
  EXPECT_THAT(error_of(objects), HasSubstr("nested deeper than"));
}

TEST(ReadLayerwiseJson, ManyKeysTakeNoSquareOfTime) {
  std::string text = R"({"context": {)";
  for (int i = 0; i < 300000; ++i) text += "\"key" + std::to_string(i) + "\":0,";
  EXPECT_EQ(read(text + "\"last\":0}}").context->size(), 300001u);
}

TEST(ReadLayerwiseJson, RefusesIllTypedLaminaPhases) {
  auto with = [](const std::string& lamina) { return document({{"prefill", 1}}, "{\"lamina\": " + lamina + "}"); };
  EXPECT_THAT(error_of(with("3")), EndsWith("context.lamina is not an object"));
  EXPECT_THAT(error_of(with(R"({"phases": []})")), EndsWith("context.lamina.phases is not an object"));
  EXPECT_THAT(error_of(with(R"({"phases": {"a": {}}})")), EndsWith("context.lamina.phases.a.summary_stats is missing"));
  EXPECT_THAT(error_of(with(R"({"phase_order": 1})")), EndsWith("context.lamina.phase_order is not an array"));
  EXPECT_THAT(error_of(with(R"({"phase_order": [1]})")), EndsWith("context.lamina.phase_order[0] is not a string"));
}

// ---- writing

TEST(WriteLayerwiseJson, HasTheSchemaAndNothingElse) {
  ordered_json json = write_layerwise_json(report_of({phase("prefill", {step(1, 10)}), phase("decode", {step(1, 1)})}));
  EXPECT_THAT(keys(json), ElementsAre("context", "prefill", "decode_1"));
  EXPECT_THAT(keys(json["prefill"]), ElementsAre("metadata", "summary_stats", "model_stats"));
  const ordered_json& summary = json["prefill"]["summary_stats"][0];
  EXPECT_EQ(summary.dump(), R"({"entry":{"name":"Model","cuda_time_us":10.0,"pct_cuda_time":100.0,"invocations":1},)"
                            R"("children":[{"entry":{"name":"kernel","cuda_time_us":10.0,"pct_cuda_time":100.0,)"
                            R"("invocations":2},"children":[]}]})");
  const ordered_json& model = json["prefill"]["model_stats"][0];
  EXPECT_EQ(model["entry"].dump(),
            R"({"name":"Model","cpu_time_us":7.5,"cuda_time_us":10.0,"pct_cuda_time":100.0,"trace":""})");
  EXPECT_EQ(model["lamina"].dump(), R"({"path":"Model#2"})");
  EXPECT_THAT(keys(model), ElementsAre("entry", "children", "lamina"));
  EXPECT_THAT(keys(model["children"][0]), ElementsAre("entry", "children"));
}

TEST(WriteLayerwiseJson, OtherPhasesStandInTheContext) {
  ordered_json json =
      write_layerwise_json(report_of({phase("startup", {step(1, 1)}), phase("warmup", {step(1, 1), step(3, 1)})}));
  EXPECT_THAT(keys(json), ElementsAre("context"));
  EXPECT_THAT(keys(json["context"]["lamina"]["phases"]), ElementsAre("startup", "warmup_1", "warmup_3"));
}

TEST(WriteLayerwiseJson, SeveralPrefillsBecomeTheirSum) {
  LayerReport report = report_of({phase("prefill", {step(1, 30), step(2, 10)})});
  ordered_json json = write_layerwise_json(report);
  EXPECT_THAT(keys(json), ElementsAre("context", "prefill"));
  EXPECT_EQ(json["prefill"]["summary_stats"][0]["entry"]["cuda_time_us"], 40);
  ASSERT_EQ(json["prefill"]["model_stats"].size(), 2u);
  EXPECT_EQ(json["prefill"]["model_stats"][0]["entry"]["pct_cuda_time"], 75);
  EXPECT_THAT(keys(json["context"]["lamina"]["prefill_steps"]), ElementsAre("prefill_1", "prefill_2"));
}

// What the plotter looks up for its title.
TEST(WriteLayerwiseJson, ContextHasWhatReadersInsistOn) {
  ordered_json none = write_layerwise_json({})["context"];
  EXPECT_THAT(keys(none), ElementsAre("engine_args", "prompt_len", "batch_size", "num_steps", "complete_num_requests_per_step"));
  EXPECT_THAT(keys(none["engine_args"]), ElementsAre("model", "tensor_parallel_size"));
  EXPECT_TRUE(none["engine_args"]["model"].is_null());
  ordered_json context = write_layerwise_json(read(document({}, kFlatContext)))["context"];
  EXPECT_EQ(context["engine_args"].dump(), R"({"model":"toy","tensor_parallel_size":2})");
  EXPECT_EQ(context["batch_size"], 4);
  EXPECT_EQ(context["prompt_len"], 512);
  EXPECT_TRUE(context["num_steps"].is_null());
  LayerReport nested = report_of({});
  (*nested.context)["engine_args"]["tensor_parallel_size"] = 2;
  EXPECT_EQ(write_layerwise_json(nested)["context"], *nested.context);
}

// The printer and the plotter look at these of every key but the context, which they want first.
TEST(WriteLayerwiseJson, EveryStepIsOneThatReadersCanShow) {
  StepReport empty;
  empty.number = 2;
  StepReport bare = step(3, 5);
  *bare.metadata = ordered_json::object();
  LayerReport report = report_of({phase("startup", {step(1, 1)}), phase("prefill", {step(1, 9)}), phase("decode", {step(1, 1), bare})});
  report.phases[2].steps.insert(report.phases[2].steps.begin() + 1, empty);
  report.phases[2].step_count = 3;
  ordered_json json = write_layerwise_json(report);
  ASSERT_THAT(keys(json), ElementsAre("context", "prefill", "decode_1", "decode_3"));
  for (const auto& [key, value] : json.items()) {
    if (key == "context") continue;
    EXPECT_THAT(keys(value), ElementsAre("metadata", "summary_stats", "model_stats")) << key;
    EXPECT_TRUE(value["metadata"].contains("num_running_seqs")) << key;
    EXPECT_FALSE(value["summary_stats"].empty()) << key;
  }
  EXPECT_THAT(keys(json["context"]["lamina"]["phases"]), ElementsAre("startup", "decode_2"));
}

TEST(WriteLayerwiseJson, NumbersAreFinite) {
  LayerReport report = report_of({phase("prefill", {step(1, NAN)})});
  report.phases[0].steps[0].summary[0].invocations = 2.5;
  std::string text = write_layerwise_json(report).dump();
  EXPECT_THAT(text, HasSubstr(R"("cuda_time_us":0.0)"));
  EXPECT_THAT(text, HasSubstr(R"("invocations":2.5)"));
}

// ---- there and back

TEST(LayerwiseJson, ComesBackAsItWas) {
  const std::vector<LayerReport> reports = {
      report_of({}),
      report_of({phase("prefill", {step(1, 10)}), phase("decode", {step(1, 1), step(2, 2), step(12, 3)})}),
      report_of({phase("prefill", {step(1, 30), step(2, 10)}), phase("decode", {step(1, 1)})}),
      report_of({phase("prefill", {step(2, 30)})}),
      report_of({phase("startup", {step(1, 5)}), phase("decode", {step(1, 1)}), phase("prefill", {step(1, 10)}),
                 phase("(none)", {step(1, 1), step(2, 1)})}),
      report_of({phase("prefill", {step(1, 10)}), with_empty_step(phase("decode", {step(1, 1), step(3, 3)}), 2)}),
      report_of({with_empty_step({.name = "prefill"}, 1), phase("decode", {step(1, 1)}), with_empty_step({.name = "x"}, 1)}),
      report_of({phase("fp_8", {step(1, 5)}), phase("fp", {step(8, 5)}), phase("x.y[0]", {step(1, 1)})}),
  };
  for (const LayerReport& report : reports) EXPECT_EQ(text_of(through_json(report)), text_of(report));
}

TEST(LayerwiseJson, TheContextComesBackWithoutOurPhases) {
  LayerReport report = report_of({phase("startup", {step(1, 5)})});
  (*report.context)["lamina"] = {{"ranks", 2}};
  EXPECT_EQ(*through_json(report).context, *report.context);
  report.context->erase("lamina");
  EXPECT_EQ(*through_json(report).context, *report.context);
}

}  // namespace
}  // namespace lamina
