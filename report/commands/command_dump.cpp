// `lamina dump`: the records of a profile, one JSON object a line. Kernels and memory operations come with their place:
// when it is known, which may be after later records.
#include <memory>
#include <nlohmann/json.hpp>

#include "report/commands/commands.h"
#include "report/format.h"
#include "report/load/profile.h"
#include "report/output.h"
#include "report/render/raw_json.h"

namespace lamina {

using nlohmann::ordered_json;

namespace {

constexpr size_t kOutputBytes = 1u << 20;

constexpr const char* kKinds[] = {"kernel", "memcpy", "memset"};
constexpr const char* kPlacements[] = {"layer", "no range", "driver", "unknown node", "stale node", "ambiguous node"};

// Collects lines, so that a write is not a line.
class Lines {
 public:
  ~Lines() noexcept(false) {
    if (!std::uncaught_exceptions()) flush();
  }
  void add(const ordered_json& json) {
    text_ += json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
    text_ += '\n';
    if (text_.size() > kOutputBytes) flush();
  }

 private:
  void flush() {
    write_stdout(text_);
    text_.clear();
  }
  std::string text_;
};

ordered_json activity_json(const Activity& activity, Position position, Placement placement, uint32_t step,
                           const ProcessDefinitions& definitions, const LayerTree& tree) {
  ordered_json json;
  json["record"] = kKinds[static_cast<size_t>(activity.kind)];
  json["name"] = tree.name(activity.name);
  json["phase"] = tree.phase(position);
  if (const StepInfo* info = definitions.step(step)) json["step"] = info->number;
  json["path"] = tree.path(position);
  if (placement != Placement::kLayer) json["placement"] = kPlacements[static_cast<size_t>(placement)];
  json["start"] = activity.start;
  json["duration_ns"] = activity.duration;
  json["device"] = activity.device;
  json["stream"] = activity.stream;
  json["correlation"] = activity.correlation;
  if (activity.graph_node != 0) {
    json["graph_node"] = fmt::format("{}:{}", activity.graph_node >> 32, activity.graph_node & 0xffffffffu);
  }
  return json;
}

bool is_activity(format::RecordKind kind) {
  using format::RecordKind;
  return kind == RecordKind::kActivity || kind == RecordKind::kKernelSite || kind == RecordKind::kMemcpySite ||
         kind == RecordKind::kMemsetSite;
}

void run_dump(const std::string& profile) {
  LayerTree::Options options;
  options.merge_instances = false;
  LayerTree tree(std::move(options));
  Lines lines;
  ProfileObserver observer;
  observer.record = [&](const RecordView& record, const ProcessDefinitions& definitions, const Chunk& chunk) {
    if (is_activity(record.header().kind)) return;
    ordered_json json = raw_json(record, definitions);
    if (chunk.header.kind == format::ChunkKind::kThread) json["thread"] = chunk.header.thread;
    lines.add(json);
  };
  observer.activity = [&](const Activity& activity, Position position, Placement placement, uint32_t step, uint32_t,
                          const ProcessDefinitions& definitions) {
    lines.add(activity_json(activity, position, placement, step, definitions, tree));
  };
  read_profile(profile, tree, std::nullopt, observer, StackView::kTrace);
}

}  // namespace

void add_dump_command(CommandLine command) {
  auto profile = std::make_shared<std::string>();
  command.profile(*profile);
  command.run([profile] { run_dump(*profile); });
}

}  // namespace lamina
