// The host threads of one process in a timeline: NVTX ranges and marks at their host times, and when kernels were launched.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "report/records/definitions.h"
#include "report/render/lanes.h"
#include "report/render/timeline_scope.h"

namespace lamina {

// Records hold no time of a launch. It lies between the NVTX events around it on its thread. Nanoseconds.
struct HostLaunch {
  static constexpr uint32_t kLong = UINT32_MAX;
  static constexpr uint16_t kNoTrack = UINT16_MAX;
  uint64_t after = 0;
  uint32_t gap = kLong;       // from there to the next event; kLong: none came, or not for long
  uint16_t share = 1u << 15;  // of 2^16: launches of one gap stand at even distances in it, the first of two at 1/3
  uint16_t track = kNoTrack;  // number of that of the innermost range around it

  // A moment inside of the gap, before the kernel at `start`. Nothing when that did not begin after `after`.
  std::optional<uint64_t> moment(uint64_t start) const;
};

class HostTimeline {
 public:
  HostTimeline(TimelineScope& scope, uint64_t process, ProcessSteps& steps) : scope_(scope), process_(process), steps_(steps) {}

  // Records of thread chunks, in file order.
  void add(const RecordView& record, const ProcessDefinitions& definitions, const Chunk& chunk);
  // Ranges that never ended end with the process; tracks get their names.
  void finish(const ProcessDefinitions& definitions);

  // Number of the launch with this correlation id, if something is known of its time. One of a single activity is forgotten.
  std::optional<uint32_t> find_launch(uint32_t correlation, bool single);
  const HostLaunch& launch(uint32_t number) const { return launches_[number]; }
  // Where a launch is shown: with the innermost range around it, once that has ended.
  std::optional<Track> track_of(const HostLaunch& launch) const;

  uint64_t last_time() const { return last_time_; }
  uint64_t left_out() const { return left_out_; }  // ranges that no lane was free for

 private:
  struct Call {
    uint32_t context;
    uint32_t number;  // among the calls of its thread
    bool shown;
    bool begin_lost;
    std::vector<uint32_t> launches = {};  // directly in it
  };
  struct Thread {
    uint32_t number;
    NestingLanes<Call> ranges = {};
    std::vector<uint16_t> tracks = {};  // by lane: numbers
    uint32_t calls = 0;
    uint32_t next_sequence = 0;
    bool lost = false;  // a piece is missing: until the next ThreadState the open calls are not known
    bool in_shown_step = false;
    uint64_t last = 0;  // time of its last event
    std::vector<uint32_t> waiting = {};  // launches since
  };
  // What a range of one string is called.
  struct Text {
    std::string_view category;
    std::string name, op, path, domain;
  };

  Thread& thread_of(const Chunk& chunk, const ProcessDefinitions& definitions);
  std::optional<uint64_t> time(Thread& thread, uint64_t host_time, const ProcessDefinitions& definitions);
  void restore(Thread& thread, const RecordView& record, const ProcessDefinitions& definitions);
  void push(Thread& thread, uint32_t context, uint64_t begin, bool begin_lost);
  void enter_step(Thread& thread, uint32_t step, const ProcessDefinitions& definitions);
  void close(Thread& thread, size_t place, uint64_t end, const ProcessDefinitions& definitions);
  void mark(Thread& thread, uint32_t string, uint64_t at, const ProcessDefinitions& definitions);
  void launched(Thread& thread, const RecordView& record, const ProcessDefinitions& definitions);
  uint16_t track(Thread& thread, size_t lane, const ProcessDefinitions& definitions);
  const Text& text(uint32_t string, const ProcessDefinitions& definitions);

  TimelineScope& scope_;
  uint64_t process_;
  ProcessSteps& steps_;
  std::map<uint32_t, Thread> threads_;
  std::unordered_map<uint32_t, Text> texts_;
  std::vector<Track> tracks_;
  std::deque<HostLaunch> launches_;
  std::unordered_map<uint32_t, uint32_t> by_correlation_;
  std::deque<uint32_t> correlations_;  // oldest first, answered ones too
  uint64_t last_time_ = 0;
  uint64_t left_out_ = 0;
};

}  // namespace lamina
