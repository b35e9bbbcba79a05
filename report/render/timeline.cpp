#include "report/render/timeline.h"

#include <algorithm>

#include "report/errors.h"
#include "report/format.h"

namespace lamina {

using namespace format;

namespace {

// Files are read until something ran on the GPU: what comes later in the file hardly happened before. Of the headers' own
// times none is, as ranges may come before the recording starts.
uint64_t start_of_file(const std::string& path) {
  ProfileFile file(path);
  ProcessDefinitions definitions;
  uint64_t first_host = UINT64_MAX, first_gpu = UINT64_MAX;
  Chunk chunk;
  while (first_gpu == UINT64_MAX && file.next(chunk)) {
    if (chunk.header.kind == ChunkKind::kActivity) first_gpu = chunk.header.base_time;
    chunk.for_each([&](const RecordView& record) {
      definitions.add(record);
      auto range = record.as<PushRecord>();
      if (record.header().kind == RecordKind::kPush && range) first_host = std::min(first_host, range->time);
    });
  }
  uint64_t host = first_host != UINT64_MAX ? definitions.realtime(first_host) : 0;
  return host != 0 ? std::min(host, first_gpu) : first_gpu;
}

}  // namespace

uint64_t timeline_start(const std::string& profile) {
  uint64_t start = UINT64_MAX;
  for (const std::string& path : profile_files(profile)) {
    try {
      start = std::min(start, start_of_file(path));
    } catch (const InputError&) {  // told when it is read
    }
  }
  return start != UINT64_MAX ? start : 0;
}

Timeline::Parts::Parts(Timeline& timeline, const LayerTree& tree, const ProfileFile& file)
    : number(timeline.process_number(file)),
      steps(timeline.phases_, phase_source(file.path())),
      host(timeline.scope_, number, steps),
      gpu(timeline.scope_, tree, host, timeline.options_.full_names) {}

Timeline::Timeline(TimelineOptions options, const TimelineEvents& events)
    : options_(std::move(options)), phases_(options_.phase), scope_{events, options_.start} {}

LayerTree::Options Timeline::tree_options() {
  LayerTree::Options options;
  options.details = [this](std::string_view phase, uint32_t step) { return phases_.wants({phase, step}); };
  options.first_model = false;
  options.only_calls = true;
  return options;
}

ProfileObserver Timeline::observer(const LayerTree& tree) {
  ProfileObserver observer;
  observer.begin = [this, &tree](const ProfileFile& file) { process_ = std::make_unique<Parts>(*this, tree, file); };
  observer.record = [this](const RecordView& record, const ProcessDefinitions& definitions, const Chunk& chunk) {
    if (chunk.header.kind == ChunkKind::kThread) process_->host.add(record, definitions, chunk);
  };
  observer.activity = [this](const Activity& activity, Position position, Placement, uint32_t step, uint32_t trace,
                             const ProcessDefinitions& definitions) {
    if (!process_->steps.shown(definitions, step)) return;
    process_->gpu.add(activity, position, trace, process_->steps.name(definitions, step));
    activities_ += activity.timed;
  };
  observer.end = [this](const Process& process) { finish(process); };
  return observer;
}

// That of the system, unless two machines gave it twice.
uint64_t Timeline::process_number(const ProfileFile& file) {
  uint64_t pid = file.header().pid;
  bool is_free = pid != 0 && pid < TimelineScope::kFirstNumber && numbers_.insert(pid).second;
  return is_free ? pid : scope_.new_number();
}

void Timeline::finish(const Process& process) {
  const ProcessDefinitions& definitions = process.definitions;
  process_->host.finish(definitions);
  count_steps(definitions);
  std::string name = process.property("process.program");
  if (name.empty()) name = "process";
  if (process.rank) name = fmt::format("rank {}: {}", *process.rank, name);
  GpuNames names;
  names.device = [&](uint32_t device) {
    std::string model = process.property(fmt::format("device.{}.name", device));
    return fmt::format("GPU {}{}{} of {} {}", device, model.empty() ? "" : " ", model, name, process_->number);
  };
  names.step = [&](std::string_view phase, uint32_t number) { return step_name({phase, number}); };
  constexpr uint64_t kPositions = 1000;  // of a process: the host, then its GPUs
  uint64_t position = (process.rank ? *process.rank : processes_) * kPositions;
  ++processes_;
  scope_.events.process(process_->number, name, position);
  draw_steps(definitions);
  process_->gpu.finish(names, position + 1);
  untimed_ += process_->gpu.untimed();
  left_out_ += process_->gpu.left_out() + process_->host.left_out();
  process_.reset();
}

// ---- steps

void Timeline::count_steps(const ProcessDefinitions& definitions) {
  for (const auto& [id, step] : definitions.steps()) {
    if (process_->steps.counts(definitions, id)) ++process_->step_counts[std::string(definitions.text(step.phase))];
  }
}

// `decode_7`, or the phase alone when it has one step.
std::string Timeline::step_name(PhaseStep step) const {
  if (!process_->steps.has_phases()) return "";
  std::string phase(step.phase);
  auto count = process_->step_counts.find(phase);
  return count != process_->step_counts.end() && count->second > 1 ? fmt::format("{}_{}", phase, step.number) : phase;
}

// The phases as the host went through them, on a track above the threads.
void Timeline::draw_steps(const ProcessDefinitions& definitions) {
  struct Edge {
    uint64_t time;
    bool begins;  // where one step ends and another begins, they do so in this order
    uint32_t step;
    auto operator<=>(const Edge&) const = default;
  };
  uint64_t last = std::max(process_->host.last_time(), process_->gpu.last_time());
  std::vector<Edge> edges;
  for (const auto& [id, step] : definitions.steps()) {
    uint64_t begin = definitions.realtime(step.begin);
    if (begin == 0 || !process_->steps.counts(definitions, id) || !process_->steps.shown(definitions, id)) continue;
    begin = scope_.since_start(begin);
    uint64_t end = step.end != 0 ? scope_.since_start(definitions.realtime(step.end)) : last;
    edges.push_back({begin, true, id});
    edges.push_back({std::max(end, begin + 1), false, id});
  }
  std::ranges::sort(edges);
  NestingLanes<uint32_t> lanes;
  std::vector<Track> tracks;
  for (const Edge& edge : edges) {
    if (edge.begins) {
      lanes.add(edge.step, edge.time);
      continue;
    }
    auto& open = lanes.open();
    auto range = std::ranges::find(open, edge.step, &NestingLanes<uint32_t>::Range::what);
    uint64_t begin = range->begin;
    auto lane = lanes.close(static_cast<size_t>(range - open.begin()));
    if (lane) draw_step(process_->steps.name(definitions, edge.step), *lane, begin, edge.time, tracks);
    if (!lane) ++left_out_;
  }
}

void Timeline::draw_step(PhaseStep step, size_t lane, uint64_t begin, uint64_t end, std::vector<Track>& tracks) {
  while (tracks.size() <= lane) {
    std::string name = tracks.empty() ? "phases" : fmt::format("phases (overlapping {})", tracks.size());
    tracks.push_back({process_->number, scope_.new_number()});
    scope_.events.track(tracks.back(), name, 0);
  }
  std::string name = step_name(step);
  scope_.events.slice(tracks[lane], begin, end, {name, "phase", name});
}

}  // namespace lamina
