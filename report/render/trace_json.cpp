#include "report/render/trace_json.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "report/format.h"

namespace lamina {

namespace {

constexpr size_t kPieceBytes = 64u << 10;

// Colours of chrome://tracing that have a name there (its color_scheme.html; another name is an error) and let black text be
// read, neighbours as different as may be. ui.perfetto.dev takes no colours: there slices of one name look alike.
constexpr std::string_view kColours[] = {
    "thread_state_runnable", "thread_state_iowait", "rail_load",        "yellow",                       "rail_response",
    "rail_animation",        "cq_build_passed",     "cq_build_failed",  "background_memory_dump",       "thread_state_unknown",
    "thread_state_running",  "bad",                 "cq_build_running", "thread_state_uninterruptible", "heap_dump_child_node_arrow"};
constexpr std::string_view kNoColour = "generic_work";

}  // namespace

void append_json_string(std::string& into, std::string_view text) {
  auto stands_for_itself = [](char c) { return c >= 0x20 && c < 0x7f && c != '"' && c != '\\'; };
  if (std::ranges::all_of(text, stands_for_itself)) return void(into.append("\"").append(text).append("\""));
  into += nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

TraceJson::TraceJson(std::function<void(std::string_view)> write, const nlohmann::ordered_json& about) : write_(std::move(write)) {
  text_ = "{\"displayTimeUnit\":\"ns\",\"otherData\":" + about.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) +
          ",\n\"traceEvents\":[";
}

TimelineEvents TraceJson::events() {
  TimelineEvents events;
  events.process = [this](uint64_t process, std::string_view name, uint64_t position) {
    std::string text;
    append_json_string(text, name);
    metadata("process_name", {process, 0}, "name", text);
    metadata("process_sort_index", {process, 0}, "sort_index", std::to_string(position));
  };
  events.track = [this](Track track, std::string_view name, uint64_t position) {
    std::string text;
    append_json_string(text, name);
    metadata("thread_name", track, "name", text);
    metadata("thread_sort_index", track, "sort_index", std::to_string(position));
  };
  events.slice = [this](Track track, uint64_t begin, uint64_t end, const TimelineLabel& slice) {
    open("X", track, begin);
    fmt::append(text_, ",\"dur\":{}.{:03}", (end - begin) / 1000, (end - begin) % 1000);
    label(slice);
    close();
  };
  events.begin = [this](Track track, uint64_t time, const TimelineLabel& slice) {
    open("B", track, time);
    label(slice);
    close();
  };
  events.end = [this](Track track, uint64_t time) {
    open("E", track, time);
    close();
  };
  events.instant = [this](Track track, uint64_t time, const TimelineLabel& mark) {
    open("i", track, time);
    text_ += ",\"s\":\"t\"";
    label(mark);
    close();
  };
  events.flow = [this](Track from, uint64_t time, Track to, uint64_t to_time) {
    constexpr std::string_view kLabel = ",\"id\":{},\"cat\":\"launch\",\"name\":\"launch\"";
    ++flows_;
    open("s", from, time);
    fmt::append(text_, kLabel, flows_);
    close();
    open("f", to, to_time);
    fmt::append(text_, kLabel, flows_);
    text_ += ",\"bp\":\"e\"";
    close();
  };
  return events;
}

// Numbers come first: some readers look no further than to the time. Microseconds with all digits, so that a time is the
// same wherever it stands.
void TraceJson::open(std::string_view phase, Track track, uint64_t time) {
  text_ += text_.ends_with('[') ? "\n" : ",\n";
  fmt::append(text_, "{{\"ph\":\"{}\",\"pid\":{},\"tid\":{},\"ts\":{}.{:03}", phase, track.process, track.thread, time / 1000, time % 1000);
}

void TraceJson::metadata(std::string_view key, Track track, std::string_view value_key, std::string_view value) {
  open("M", track, 0);
  fmt::append(text_, ",\"name\":\"{}\",\"args\":{{\"{}\":{}}}", key, value_key, value);
  close();
}

// The next colour for each new key: a hash would give two of a dozen layers the same one.
std::string_view TraceJson::colour_of(std::string_view key) {
  if (key.starts_with('(')) return kNoColour;  // `(no module)`: no layer
  auto [known, added] = colours_.try_emplace(std::string(key), colours_.size() % std::size(kColours));
  return kColours[known->second];
}

void TraceJson::label(const TimelineLabel& label) {
  text_ += ",\"name\":";
  append_json_string(text_, label.name);
  fmt::append(text_, ",\"cat\":\"{}\"", label.category);
  if (!label.colour_key.empty()) fmt::append(text_, ",\"cname\":\"{}\"", colour_of(label.colour_key));
  if (!label.args.empty()) args(label.args);
}

void TraceJson::args(std::span<const TimelineArg> args) {
  text_ += ",\"args\":{";
  for (const TimelineArg& arg : args) {
    fmt::append(text_, "{}\"{}\":", &arg == args.data() ? "" : ",", arg.name);
    if (auto text = std::get_if<std::string_view>(&arg.value)) append_json_string(text_, *text);
    if (auto number = std::get_if<uint64_t>(&arg.value)) fmt::append(text_, "{}", *number);
    if (auto sizes = std::get_if<std::array<int32_t, 3>>(&arg.value)) fmt::append(text_, "[{},{},{}]", (*sizes)[0], (*sizes)[1], (*sizes)[2]);
  }
  text_ += '}';
}

void TraceJson::close() {
  text_ += '}';
  if (text_.size() < kPieceBytes) return;
  write_(text_);
  text_.clear();
}

void TraceJson::finish() {
  text_ += "\n]}\n";
  write_(text_);
  text_.clear();
}

}  // namespace lamina
