// A profile as a timeline: what ran on each stream of each GPU, in which layer and step, and what the host threads did. Made
// of records (load/profile.h), as the finished tree knows no times of day; host tracks come out while they are read, GPU
// tracks at the end of each process.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "report/load/profile.h"
#include "report/render/gpu_timeline.h"
#include "report/render/host_timeline.h"
#include "report/render/timeline_events.h"
#include "report/render/timeline_scope.h"

namespace lamina {

struct TimelineOptions {
  uint64_t start = 0;      // CLOCK_REALTIME in ns: time 0
  std::string phase = {};  // `decode`, `decode_7`; empty: all
  bool full_names = false;
};

// The earliest time in the beginnings of the profile's files: CLOCK_REALTIME in ns. Throws InputError when there are none.
uint64_t timeline_start(const std::string& profile);

class Timeline {
 public:
  Timeline(TimelineOptions options, const TimelineEvents& events);

  // What the tree has to keep so that calls can be told apart. `tree` is filled by read_profile() with observer().
  LayerTree::Options tree_options();
  ProfileObserver observer(const LayerTree& tree);

  const PhaseChoice& phases() const { return phases_; }
  uint64_t activities() const { return activities_; }  // on the timeline
  uint64_t untimed() const { return untimed_; }
  uint64_t left_out() const { return left_out_; }      // slices that need more than kMaxLanes

 private:
  struct Parts {
    Parts(Timeline& timeline, const LayerTree& tree, const ProfileFile& file);
    uint64_t number;
    ProcessSteps steps;
    std::map<std::string, uint32_t> step_counts = {};  // by phase, known at the end
    HostTimeline host;
    GpuTimeline gpu;
  };

  void finish(const Process& process);
  uint64_t process_number(const ProfileFile& file);
  void count_steps(const ProcessDefinitions& definitions);
  std::string step_name(PhaseStep step) const;
  void draw_steps(const ProcessDefinitions& definitions);
  void draw_step(PhaseStep step, size_t lane, uint64_t begin, uint64_t end, std::vector<Track>& tracks);

  TimelineOptions options_;
  PhaseChoice phases_;
  TimelineScope scope_;
  std::unique_ptr<Parts> process_;  // the one that is read
  std::set<uint64_t> numbers_;      // of processes
  uint64_t processes_ = 0;
  uint64_t activities_ = 0, untimed_ = 0, left_out_ = 0;
};

}  // namespace lamina
