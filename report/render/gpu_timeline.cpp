#include "report/render/gpu_timeline.h"

#include <algorithm>
#include <tuple>

#include "report/format.h"
#include "report/load/progress.h"
#include "report/names/kernel_name.h"

namespace lamina {

namespace {

constexpr uint32_t kNoLaunch = UINT32_MAX;
constexpr const char* kActivityCategories[] = {"kernel", "memcpy", "memset"};  // by ActivityKind
constexpr std::string_view kNoModule = "(no module)";

std::string microseconds(uint64_t ns) { return fmt::format("{}.{:03}", ns / 1000, ns % 1000); }

// When a kernel was launched, as far as it is known.
std::string launch_text(const HostLaunch& launch) {
  std::string after = microseconds(launch.after);
  if (launch.gap == HostLaunch::kLong) return "after " + after + " us";
  return "between " + after + " and " + microseconds(launch.after + launch.gap) + " us";
}

}  // namespace

// ---- collecting

size_t GpuTimeline::SiteHash::operator()(const Site& site) const {
  size_t hash = site.graph_node;
  for (uint64_t part : {uint64_t{site.name}, uint64_t{site.trace}, site.size.bytes, static_cast<uint64_t>(site.size.grid[0]),
                        static_cast<uint64_t>(site.size.grid[1]), static_cast<uint64_t>(site.size.block[0])}) {
    hash = (hash ^ part) * 0x9e3779b97f4a7c15u;
    hash ^= hash >> 29;
  }
  return hash;
}

uint32_t GpuTimeline::site(const Activity& activity, uint32_t trace) {
  Site site{activity.name, trace, activity.kind, activity.graph_node, activity.size};
  auto [known, added] = site_numbers_.try_emplace(site, static_cast<uint32_t>(sites_.size()));
  if (added) {
    sites_.push_back(site);
    const std::string& name = tree_.name(activity.name);
    site_names_.push_back(full_names_ || site.kind != ActivityKind::kKernel ? name : short_kernel_name(name));
  }
  return known->second;
}

void GpuTimeline::add(const Activity& activity, Position position, uint32_t trace, PhaseStep step) {
  if (!activity.timed) return void(++untimed_);
  uint32_t root = position.model;
  while (tree_.call(root).parent != 0) root = tree_.call(root).parent;
  steps_.try_emplace(root, step.phase, step.number);
  Ran ran{scope_.since_start(activity.start), activity.duration, site(activity, trace), position.model, activity.correlation, kNoLaunch};
  if (auto launch = host_.find_launch(activity.correlation, activity.graph_node == 0)) {
    ran.launch = *launch;
    if (activity.graph_node != 0) {
      auto [first, added] = first_starts_.try_emplace(*launch, ran.start);
      first->second = std::min(first->second, ran.start);
    }
  }
  last_time_ = std::max(last_time_, ran.end());
  devices_[activity.device].streams[activity.stream].ran.push_back(ran);
}

// ---- drawing

// The layers open on the first track of a stream.
class GpuTimeline::Layers {
 public:
  Layers(GpuTimeline& timeline, Track track) : timeline_(timeline), track_(track) {}

  // What comes next at `at` is in these calls, until `end`. Layers of others are over, even if they go on later.
  void enter(const std::vector<uint32_t>& calls, uint64_t at, uint64_t end) {
    size_t same = 0;
    while (same < open_.size() && same < calls.size() && open_[same].call == calls[same]) ++same;
    leave(same, at);
    for (size_t i = same; i < calls.size(); ++i) begin(calls[i], at);
    for (Open& open : open_) open.end = std::max(open.end, end);
  }

  void leave(size_t left, uint64_t at) {
    while (open_.size() > left) {
      if (open_.back().drawn) timeline_.scope_.events.end(track_, std::min(open_.back().end, at));
      open_.pop_back();
    }
  }

 private:
  struct Open {
    uint32_t call;
    uint64_t end;
    bool drawn;
  };

  void begin(uint32_t call, uint64_t at) {
    LayerTree::Call layer = timeline_.tree_.call(call);
    bool is_step = layer.parent == 0;
    const std::string& name = is_step ? timeline_.step_names_[call] : timeline_.tree_.name(layer.name.name);
    if (!name.empty()) {
      const std::string& path = timeline_.tree_.name(layer.name.path);
      TimelineArg arg{"path", std::string_view(path)};
      timeline_.scope_.events.begin(track_, at, {name, is_step ? "phase" : "layer", name, {&arg, path.empty() ? 0u : 1u}});
    }
    open_.push_back({call, at, !name.empty()});
  }

  GpuTimeline& timeline_;
  Track track_;
  std::vector<Open> open_;
};

GpuTimeline::Path GpuTimeline::path_of(uint32_t call) const {
  Path path;
  for (uint32_t at = call; at != 0; at = tree_.call(at).parent) path.calls.push_back(at);
  std::ranges::reverse(path.calls);
  for (uint32_t layer : path.calls) {
    LayerName name = tree_.call(layer).name;
    if (name.name == 0) continue;
    if (!path.names.empty()) path.names += " / ";
    path.names += tree_.name(name.name);
    path.instance = tree_.name(name.path);
    path.layer = tree_.name(name.name);
  }
  if (path.layer.empty()) path.names = kNoModule;
  return path;
}

Track GpuTimeline::track(Device& device, Stream& stream, size_t lane) {
  while (stream.tracks.size() <= lane) stream.tracks.push_back({device.process, scope_.new_number()});
  return stream.tracks[lane];
}

void GpuTimeline::draw_activity(const Ran& ran, const Path& path, Track track) {
  const Site& site = sites_[ran.site];
  const std::string& name = site_names_[ran.site];
  const std::string& full_name = tree_.name(site.name);
  const std::string& trace = tree_.name(site.trace);
  std::string node = site.graph_node != 0 ? fmt::format("{}:{}", site.graph_node >> 32, site.graph_node & 0xffffffffu) : "";
  std::string launch = ran.launch != kNoLaunch ? launch_text(host_.launch(ran.launch)) : "";
  std::vector<TimelineArg> args;
  args.reserve(16);
  auto add_text = [&](std::string_view key, std::string_view text) {
    if (!text.empty()) args.push_back({key, text});
  };
  add_text("layer", path.names);
  add_text("path", path.instance);
  add_text("trace", trace);
  if (full_name != name) add_text("full name", full_name);
  if (site.kind == ActivityKind::kKernel) {
    args.push_back({"grid", site.size.grid});
    args.push_back({"block", site.size.block});
    args.push_back({"registers", uint64_t{site.size.registers}});
    args.push_back({"static shared memory", uint64_t{site.size.static_shared_memory}});
    args.push_back({"dynamic shared memory", uint64_t{site.size.dynamic_shared_memory}});
  } else {
    args.push_back({"bytes", site.size.bytes});
  }
  add_text("graph node", node);
  args.push_back({"correlation", uint64_t{ran.correlation}});
  add_text("launched", launch);
  scope_.events.begin(track, ran.start, {name, kActivityCategories[static_cast<size_t>(site.kind)], path.layer.empty() ? kNoModule : path.layer, args});
  draw_arrow(ran, track);
  scope_.events.end(track, ran.end());
}

// A mark where it was launched, and an arrow from there. One for each launch: to the first of its kernels, when a graph has many.
void GpuTimeline::draw_arrow(const Ran& ran, Track track) {
  if (ran.launch == kNoLaunch) return;
  const Site& site = sites_[ran.site];
  if (site.graph_node != 0) {
    auto first = first_starts_.find(ran.launch);
    if (first == first_starts_.end() || first->second != ran.start) return;
    first_starts_.erase(first);
  }
  const HostLaunch& launch = host_.launch(ran.launch);
  std::optional<Track> from = host_.track_of(launch);
  std::optional<uint64_t> moment = launch.moment(ran.start);
  if (!from || !moment) return;
  std::string name = site.graph_node != 0 ? "launch of a graph" : "launch of " + site_names_[ran.site];
  std::string when = launch_text(launch);
  TimelineArg args[] = {{"launched", std::string_view(when)}, {"correlation", uint64_t{ran.correlation}}};
  scope_.events.instant(*from, *moment, {name, "launch", {}, args});
  scope_.events.flow(*from, *moment, track, ran.start);
}

void GpuTimeline::draw(Device& device, Stream& stream) {
  std::ranges::sort(stream.ran, {}, [](const Ran& ran) { return std::tuple(ran.start, ran.correlation, ran.end()); });
  Layers layers(*this, track(device, stream, 0));
  DisjointLanes lanes;
  Path path;
  uint64_t busy = 0;  // until when the first lane is
  Progress progress("GPU timeline");
  for (size_t i = 0; i < stream.ran.size(); ++i) {
    if (i % 4096 == 0) progress.at(i, stream.ran.size());
    const Ran& ran = stream.ran[i];
    uint64_t end = ran.end();
    // Copies between places of the device are recorded as going on long into the kernels behind them: these come first.
    bool is_memory = sites_[ran.site].kind != ActivityKind::kKernel;
    bool overlaps_next = i + 1 < stream.ran.size() && stream.ran[i + 1].start < end;
    std::optional<size_t> lane = lanes.take(ran.start, end, is_memory && overlaps_next ? 1 : 0);
    if (path.calls.empty() || path.calls.back() != ran.call) path = path_of(ran.call);
    // A kernel that overlaps the one before counts for its layer from where that has ended.
    if (lane == 0u || end > busy) layers.enter(path.calls, std::max(ran.start, busy), end);
    if (lane == 0u) busy = end;
    if (lane) {
      draw_activity(ran, path, track(device, stream, *lane));
    } else {
      ++left_out_;
    }
  }
  layers.leave(0, UINT64_MAX);
  stream.ran.clear();
}

void GpuTimeline::finish(const GpuNames& names, uint64_t position) {
  for (const auto& [call, step] : steps_) step_names_[call] = names.step(step.first, step.second);
  for (auto& [number, device] : devices_) {
    device.process = scope_.new_number();
    scope_.events.process(device.process, names.device(number), position++);
    uint64_t row = 0;
    for (auto& [id, stream] : device.streams) {
      draw(device, stream);
      for (size_t lane = 0; lane < stream.tracks.size(); ++lane) {
        std::string name = fmt::format("stream {}", id);
        if (lane > 0) name += fmt::format(" (overlapping {})", lane);
        scope_.events.track(stream.tracks[lane], name, ++row);
      }
    }
  }
}

}  // namespace lamina
