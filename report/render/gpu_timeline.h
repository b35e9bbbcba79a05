// The GPU streams of one process in a timeline: kernels and memory operations, and above them the layers they belong to, from
// the first kernel of a call to its last.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "report/attribution/attribution.h"
#include "report/render/host_timeline.h"
#include "report/render/lanes.h"
#include "report/render/timeline_scope.h"
#include "report/tree/layer_tree.h"

namespace lamina {

// What only the end of a process tells.
struct GpuNames {
  std::function<std::string(uint32_t device)> device;
  std::function<std::string(std::string_view phase, uint32_t number)> step;  // empty: it has no slice
};

class GpuTimeline {
 public:
  GpuTimeline(TimelineScope& scope, const LayerTree& tree, HostTimeline& host, bool full_names)
      : scope_(scope), tree_(tree), host_(host), full_names_(full_names) {}

  // Keeps 32 bytes of an activity, whose position is one with a model (layer_tree.h).
  void add(const Activity& activity, Position position, uint32_t trace, PhaseStep step);

  // Draws all, after HostTimeline::finish(). Positions count from `position`.
  void finish(const GpuNames& names, uint64_t position);

  uint64_t untimed() const { return untimed_; }    // activities that are not drawn: no one knows when they were
  uint64_t left_out() const { return left_out_; }  // that no lane was free for
  uint64_t last_time() const { return last_time_; }

 private:
  // What the executions of one kernel at one place have in common.
  struct Site {
    uint32_t name = 0, trace = 0;  // LayerTree::name_id
    ActivityKind kind = ActivityKind::kKernel;
    uint64_t graph_node = 0;
    ActivitySize size;
    bool operator==(const Site&) const = default;
  };
  struct SiteHash {
    size_t operator()(const Site& site) const;
  };
  struct Ran {
    uint64_t start, duration;
    uint32_t site;
    uint32_t call;  // Position::model
    uint32_t correlation;
    uint32_t launch;  // number in the host timeline; kNoLaunch

    uint64_t end() const { return start + duration; }
  };
  struct Stream {
    std::deque<Ran> ran;
    std::vector<Track> tracks;  // by lane
  };
  struct Device {
    uint64_t process = 0;
    std::map<uint32_t, Stream> streams;
  };
  class Layers;

  // A call as it is shown: its layers outermost first, those of which the path is known by that.
  struct Path {
    std::vector<uint32_t> calls;  // outermost first; the first is the step
    std::string names, instance;
    std::string_view layer;  // the innermost
  };

  uint32_t site(const Activity& activity, uint32_t trace);
  void draw(Device& device, Stream& stream);
  void draw_activity(const Ran& ran, const Path& path, Track track);
  void draw_arrow(const Ran& ran, Track track);
  Path path_of(uint32_t call) const;
  Track track(Device& device, Stream& stream, size_t lane);

  TimelineScope& scope_;
  const LayerTree& tree_;
  HostTimeline& host_;
  bool full_names_;
  std::map<uint32_t, Device> devices_;
  std::vector<Site> sites_;
  std::vector<std::string> site_names_;  // as they are shown
  std::unordered_map<Site, uint32_t, SiteHash> site_numbers_;
  std::unordered_map<uint32_t, uint64_t> first_starts_;  // of graph launches that have no arrow yet: when their first kernel began
  std::unordered_map<uint32_t, std::pair<std::string, uint32_t>> steps_;  // phase and number, by the call that a step is
  std::unordered_map<uint32_t, std::string> step_names_;
  uint64_t untimed_ = 0, left_out_ = 0, last_time_ = 0;
};

}  // namespace lamina
