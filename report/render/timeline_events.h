// What a timeline consists of, event by event, for whoever draws or writes it (trace_json.h; tests).
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <span>
#include <string_view>
#include <variant>

namespace lamina {

// A row of the timeline: slices on it nest.
struct Track {
  uint64_t process = 0;
  uint64_t thread = 0;
  auto operator<=>(const Track&) const = default;
};

struct TimelineArg {
  std::string_view name;
  std::variant<std::string_view, uint64_t, std::array<int32_t, 3>> value;
};

// What is shown for a stretch or a moment. Texts live as long as the call that hands them over.
struct TimelineLabel {
  std::string_view name;
  std::string_view category;    // `kernel`, `layer`, `range`, …
  std::string_view colour_key;  // slices of one key look alike; empty: as the viewer likes
  std::span<const TimelineArg> args = {};
};

// Times are nanoseconds since the start of the timeline. A track has either slices, in any order, or begins and ends, in
// order of time: at one time an inner slice ends before the outer one, and what ends before what begins.
struct TimelineEvents {
  std::function<void(uint64_t process, std::string_view name, uint64_t position)> process;
  std::function<void(Track, std::string_view name, uint64_t position)> track;
  std::function<void(Track, uint64_t begin, uint64_t end, const TimelineLabel&)> slice;
  std::function<void(Track, uint64_t time, const TimelineLabel&)> begin;
  std::function<void(Track, uint64_t time)> end;
  std::function<void(Track, uint64_t time, const TimelineLabel&)> instant;
  // An arrow from an instant that was just told to the slice that has just begun.
  std::function<void(Track from, uint64_t time, Track to, uint64_t to_time)> flow;
};

}  // namespace lamina
