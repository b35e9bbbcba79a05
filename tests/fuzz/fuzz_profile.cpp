#include "fuzz_profile.h"

#include <fcntl.h>
#include <nlohmann/json.hpp>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

#include "profile_builder.h"
#include "report/errors.h"
#include "report/load/layerwise_json.h"
#include "report/load/report_context.h"
#include "report/render/info.h"
#include "report/render/raw_json.h"
#include "report/render/tables.h"
#include "report/render/timeline.h"
#include "report/render/trace_json.h"

namespace lamina {
namespace {

using namespace format;

void run_report(const std::string& path) {
  LayerTree::Options options;
  options.details = [](auto, uint32_t step) { return step < 3; };
  options.step_summaries = options.gpu_time = true;
  LayerTree tree(std::move(options));
  ProfileObserver observer;
  observer.record = [](const RecordView& record, const ProcessDefinitions& definitions, const Chunk&) {
    raw_json(record, definitions).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  };
  observer.activity = [&](const Activity&, Position position, auto&&...) {
    tree.path(position);
    tree.phase(position);
  };
  std::vector<Process> processes = read_profile(path, tree, std::nullopt, observer);
  LayerReport report;
  report.context = report_context(processes);
  tree.finish(report);
  for (const PhaseReport& phase : report.phases) {
    summary_table(phase.summary, Names::kFull);
    for (const StepReport& step : phase.steps) model_table(step.model);
  }
  info_text(path, processes, report);
  std::string json = write_layerwise_json(report).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  read_layerwise_json(json, "written");
}

// Whatever the profile says, the timeline is JSON, and its begins and ends match.
void run_timeline(const std::string& path) {
  std::string text;
  TraceJson json([&](std::string_view piece) { text += piece; }, {});
  TimelineEvents events = json.events();
  Timeline timeline({.start = timeline_start(path)}, events);
  LayerTree tree(timeline.tree_options());
  read_profile(path, tree, std::nullopt, timeline.observer(tree));
  json.finish();
  std::map<uint64_t, int64_t> open;
  const nlohmann::json trace = nlohmann::json::parse(text);
  for (const auto& event : trace["traceEvents"]) {
    if (event["ph"] == "B") ++open[event["tid"]];
    if (event["ph"] == "E" && --open[event["tid"]] < 0) abort();
  }
  for (const auto& [track, count] : open) {
    if (count != 0) abort();
  }
}

}  // namespace

void read_as_profile(std::span<const uint8_t> file) {
  int memory = memfd_create("profile", 0);
  if (memory < 0) return;
  bool written = write(memory, file.data(), file.size()) == static_cast<ssize_t>(file.size());
  try {
    std::string path = "/proc/self/fd/" + std::to_string(memory);
    if (written) run_report(path);
    if (written) run_timeline(path);
  } catch (const InputError&) {
  }
  close(memory);
}

void read_as_records(std::span<const uint8_t> input) {
  constexpr ChunkKind kKinds[] = {ChunkKind::kDefinitions, ChunkKind::kThread, ChunkKind::kActivity,
                                  ChunkKind::kTrailer};
  std::string file = file_header();
  uint32_t sequences[2] = {};
  while (input.size() > 3) {
    ChunkHeader header{};
    header.kind = kKinds[input[0] % 4];
    if (header.kind == ChunkKind::kThread) {
      header.thread = input[0] / 4 % 2;
      header.sequence = sequences[header.thread]++;
      if (input[0] & 0x80) ++sequences[header.thread];  // one is missing after it
    }
    size_t length = std::min<size_t>(input[1] + input[2] * size_t{256}, input.size() - 3);
    auto records = input.subspan(3, length);
    file += chunk_bytes(header, {reinterpret_cast<const char*>(records.data()), records.size()});
    input = input.subspan(3 + length);
  }
  read_as_profile({reinterpret_cast<const uint8_t*>(file.data()), file.size()});
}

}  // namespace lamina
