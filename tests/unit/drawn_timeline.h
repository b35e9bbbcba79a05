// What a timeline of a profile shows, for tests.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "profile_builder.h"
#include "report/render/timeline.h"

namespace lamina {

// Times of tests: both clocks begin here (see both_clocks()).
inline constexpr uint64_t kTimelineStart = 1'700'000'000'000'000'000;

struct DrawnSlice {
  uint64_t begin, end;
  std::string name, category;
  std::map<std::string, std::string> args;
};

struct DrawnArrow {
  std::string from;  // track
  uint64_t begin;
  std::string to;
  uint64_t end;
};

struct Drawn {
  std::map<std::string, std::vector<DrawnSlice>> tracks;  // by name, in order of begin
  std::map<std::string, std::vector<DrawnSlice>> marks;
  std::vector<DrawnArrow> arrows;
  std::vector<std::string> processes;
  uint64_t untimed = 0, left_out = 0;
  bool found_phase = true;

  // A slice a line, `BEGIN-END NAME` with times in ns, indented by how deep it lies.
  std::string text(const std::string& track) const;
  // The slice of this name, the first.
  const DrawnSlice& slice(const std::string& track, std::string_view name) const;
};

// Sets host time 0 to kTimelineStart.
void both_clocks(ProfileBuilder& profile);

// Fails the test where slices of a track overlap without nesting, or events come in a forbidden order.
Drawn draw(ProfileBuilder& profile, const std::string& phase = "", bool full_names = false);

}  // namespace lamina
