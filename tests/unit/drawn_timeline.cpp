#include "drawn_timeline.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "read_back.h"

#include "report/format.h"

namespace lamina {

namespace {

std::string value_text(const TimelineArg& arg) {
  if (auto text = std::get_if<std::string_view>(&arg.value)) return std::string(*text);
  if (auto number = std::get_if<uint64_t>(&arg.value)) return std::to_string(*number);
  auto sizes = std::get<std::array<int32_t, 3>>(arg.value);
  return fmt::format("{},{},{}", sizes[0], sizes[1], sizes[2]);
}

DrawnSlice drawn(uint64_t begin, uint64_t end, const TimelineLabel& label) {
  DrawnSlice slice{begin, end, std::string(label.name), std::string(label.category), {}};
  for (const TimelineArg& arg : label.args) slice.args[std::string(arg.name)] = value_text(arg);
  return slice;
}

// Collects events while tracks have no names yet.
class Collector {
 public:
  TimelineEvents events() {
    TimelineEvents events;
    events.process = [this](uint64_t process, std::string_view name, uint64_t) {
      EXPECT_TRUE(process_names_.emplace(process, name).second) << "process named twice";
    };
    events.track = [this](Track track, std::string_view name, uint64_t) {
      EXPECT_TRUE(names_.emplace(track, name).second) << name << " named twice";
    };
    events.slice = [this](Track track, uint64_t begin, uint64_t end, const TimelineLabel& label) {
      slices_[track].push_back(drawn(begin, end, label));
    };
    events.begin = [this](Track track, uint64_t time, const TimelineLabel& label) {
      expect_forward(track, time);
      open_[track].push_back(slices_[track].size());
      slices_[track].push_back(drawn(time, time, label));
    };
    events.end = [this](Track track, uint64_t time) {
      expect_forward(track, time);
      ASSERT_FALSE(open_[track].empty());
      slices_[track][open_[track].back()].end = time;
      open_[track].pop_back();
    };
    events.instant = [this](Track track, uint64_t time, const TimelineLabel& label) { marks_[track].push_back(drawn(time, time, label)); };
    events.flow = [this](Track from, uint64_t time, Track to, uint64_t to_time) { arrows_.push_back({from, time, to, to_time}); };
    return events;
  }

  Drawn finish() {
    Drawn result;
    for (auto& [track, open] : open_) EXPECT_TRUE(open.empty()) << names_[track];
    for (auto& [track, slices] : slices_) {
      std::ranges::stable_sort(slices, {}, [](const DrawnSlice& slice) { return std::pair(slice.begin, UINT64_MAX - slice.end); });
      expect_nested(slices);
      EXPECT_TRUE(process_names_.contains(track.process));
      result.tracks[names_.at(track)] = std::move(slices);
    }
    for (auto& [track, marks] : marks_) result.marks[names_.at(track)] = std::move(marks);
    for (const Arrow& arrow : arrows_) {
      EXPECT_LT(arrow.begin, arrow.end);
      result.arrows.push_back({names_.at(arrow.from), arrow.begin, names_.at(arrow.to), arrow.end});
    }
    for (auto& [number, name] : process_names_) result.processes.push_back(name);
    return result;
  }

 private:
  struct Arrow {
    Track from;
    uint64_t begin;
    Track to;
    uint64_t end;
  };

  void expect_forward(Track track, uint64_t time) {
    EXPECT_GE(time, last_[track]);
    last_[track] = time;
  }

  static void expect_nested(const std::vector<DrawnSlice>& slices) {
    std::vector<const DrawnSlice*> around;
    for (const DrawnSlice& slice : slices) {
      while (!around.empty() && around.back()->end <= slice.begin) around.pop_back();
      bool nests = around.empty() || slice.end <= around.back()->end;
      EXPECT_TRUE(nests) << slice.name << " leaves what it is in";
      around.push_back(&slice);
    }
  }

  std::map<uint64_t, std::string> process_names_;
  std::map<Track, std::string> names_;
  std::map<Track, std::vector<DrawnSlice>> slices_, marks_;
  std::map<Track, std::vector<size_t>> open_;
  std::map<Track, uint64_t> last_;
  std::vector<Arrow> arrows_;
};

}  // namespace

std::string Drawn::text(const std::string& track) const {
  auto found = tracks.find(track);
  if (found == tracks.end()) return "no track " + track;
  std::string lines;
  std::vector<uint64_t> ends;
  for (const DrawnSlice& slice : found->second) {
    while (!ends.empty() && ends.back() <= slice.begin) ends.pop_back();
    lines += fmt::format("{:{}}{}-{} {}\n", "", ends.size() * 2, slice.begin, slice.end, slice.name);
    ends.push_back(slice.end);
  }
  return lines;
}

const DrawnSlice& Drawn::slice(const std::string& track, std::string_view name) const {
  static const DrawnSlice kNone{};
  auto found = tracks.find(track);
  if (found == tracks.end()) return ADD_FAILURE() << "no track " << track, kNone;
  auto slice = std::ranges::find(found->second, name, &DrawnSlice::name);
  if (slice == found->second.end()) return ADD_FAILURE() << "no slice " << name, kNone;
  return *slice;
}

void both_clocks(ProfileBuilder& profile) {
  profile.define(format::RecordKind::kClockPair, 0, 0, format::ClockPairRecord{{}, 0, kTimelineStart});
}

Drawn draw(ProfileBuilder& profile, const std::string& phase, bool full_names) {
  TemporaryFile file(profile.bytes());
  Collector collector;
  TimelineEvents events = collector.events();
  Timeline timeline({.start = kTimelineStart, .phase = phase, .full_names = full_names}, events);
  LayerTree tree(timeline.tree_options());
  read_profile(file.path(), tree, std::nullopt, timeline.observer(tree));
  Drawn result = collector.finish();
  result.untimed = timeline.untimed();
  result.left_out = timeline.left_out();
  result.found_phase = timeline.phases().found();
  return result;
}

}  // namespace lamina
