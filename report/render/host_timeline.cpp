#include "report/render/host_timeline.h"

#include <algorithm>

#include "report/attribution/nvtx_message.h"
#include "report/format.h"

namespace lamina {

using namespace format;

namespace {

constexpr size_t kMaxOpenRanges = 1024;       // the recorder stops far earlier
constexpr size_t kMaxLaunches = 1u << 20;     // that wait for their kernels
constexpr std::string_view kOtherRange = "(other)";
constexpr const char* kRangeCategories[] = {"layer", "op", "layer", "mark", "range"};  // by NvtxMessage::Kind

}  // namespace

std::optional<uint64_t> HostLaunch::moment(uint64_t start) const {
  uint64_t latest = gap != kLong ? std::min(after + gap, start) : start;
  if (latest < after + 2) return std::nullopt;
  uint64_t width = gap != kLong ? gap : latest - after;
  uint64_t at = after + (width * share >> 16);
  return std::clamp(at < latest ? at : after + (latest - after) / 2, after + 1, latest - 1);
}

void HostTimeline::add(const RecordView& record, const ProcessDefinitions& definitions, const Chunk& chunk) {
  Thread& thread = thread_of(chunk, definitions);
  uint32_t id = record.header().id;
  switch (record.header().kind) {
    case RecordKind::kThreadState: return restore(thread, record, definitions);
    case RecordKind::kStepChange: return enter_step(thread, id, definitions);
    case RecordKind::kLaunch: return launched(thread, record, definitions);
    case RecordKind::kPush:
      if (auto range = record.as<PushRecord>(); range && !thread.lost) {
        if (auto at = time(thread, range->time, definitions)) push(thread, id, *at, false);
      }
      return;
    case RecordKind::kPop:
      if (auto range = record.as<PopRecord>(); range && !thread.lost && id < thread.ranges.open().size()) {
        if (auto at = time(thread, range->time, definitions)) close(thread, id, *at, definitions);
      }
      return;
    case RecordKind::kMark:
      if (auto made = record.as<MarkRecord>()) {
        if (auto at = time(thread, made->time, definitions)) mark(thread, id, *at, definitions);
      }
      return;
    default: return;
  }
}

HostTimeline::Thread& HostTimeline::thread_of(const Chunk& chunk, const ProcessDefinitions& definitions) {
  auto [known, added] = threads_.try_emplace(chunk.header.thread, Thread{.number = chunk.header.thread});
  Thread& thread = known->second;
  if (added) thread.in_shown_step = steps_.shown(definitions, kStartupStep);
  uint32_t next = chunk.header.sequence + 1;
  if (thread.next_sequence != next && thread.next_sequence != chunk.header.sequence) thread.lost = true;
  thread.next_sequence = next;
  return thread;
}

// Since the start of the timeline, later than all before it on the thread: the clocks may have been set between two pairs.
std::optional<uint64_t> HostTimeline::time(Thread& thread, uint64_t host_time, const ProcessDefinitions& definitions) {
  uint64_t realtime = definitions.realtime(host_time);
  if (realtime == 0) return std::nullopt;
  uint64_t before = thread.last;
  thread.last = std::max(scope_.since_start(realtime), before + 1);
  last_time_ = std::max(last_time_, thread.last);
  for (size_t i = 0; i < thread.waiting.size(); ++i) {
    HostLaunch& launch = launches_[thread.waiting[i]];
    launch.gap = static_cast<uint32_t>(std::min<uint64_t>(thread.last - before, HostLaunch::kLong));
    launch.share = static_cast<uint16_t>((i + 1) * (1u << 16) / (thread.waiting.size() + 1));
  }
  thread.waiting.clear();
  return thread.last;
}

// The open calls as the recorder says them. Normally they are what was read; after a loss they are not.
void HostTimeline::restore(Thread& thread, const RecordView& record, const ProcessDefinitions& definitions) {
  auto state = record.as<ThreadStateRecord>();
  if (!state) return;
  std::vector<OpenCall> calls;
  auto bytes = record.behind<ThreadStateRecord>();
  for (size_t at = 0; at + sizeof(OpenCall) <= bytes.size(); at += sizeof(OpenCall)) {
    memcpy(&calls.emplace_back(), bytes.data() + at, sizeof(OpenCall));
  }
  auto& open = thread.ranges.open();
  auto goes_on = [&](uint32_t number) { return std::ranges::any_of(calls, [&](const OpenCall& call) { return call.call == number; }); };
  for (size_t i = open.size(); i-- > 0;) {
    if (!goes_on(open[i].what.number)) close(thread, i, ++thread.last, definitions);
  }
  enter_step(thread, state->step, definitions);
  for (const OpenCall& call : calls) {
    if (std::ranges::any_of(open, [&](const auto& range) { return range.what.number == call.call; })) continue;
    thread.calls = call.call - 1;
    push(thread, call.context, ++thread.last, true);
  }
  thread.calls = state->calls;
  thread.lost = false;
}

void HostTimeline::push(Thread& thread, uint32_t context, uint64_t begin, bool begin_lost) {
  if (thread.ranges.open().size() >= kMaxOpenRanges) return;
  thread.ranges.add({context, ++thread.calls, thread.in_shown_step, begin_lost}, begin);
}

// What is open around a shown step is shown too.
void HostTimeline::enter_step(Thread& thread, uint32_t step, const ProcessDefinitions& definitions) {
  thread.in_shown_step = steps_.shown(definitions, step);
  if (!thread.in_shown_step) return;
  for (auto& range : thread.ranges.open()) range.what.shown = true;
}

void HostTimeline::close(Thread& thread, size_t place, uint64_t end, const ProcessDefinitions& definitions) {
  auto range = thread.ranges.open()[place];
  std::optional<size_t> lane = thread.ranges.close(place);
  if (!range.what.shown) return;
  if (!lane) return void(++left_out_);
  uint16_t on = track(thread, *lane, definitions);
  for (uint32_t launch : range.what.launches) launches_[launch].track = on;
  const ContextInfo* info = definitions.context(range.what.context);
  const Text& known = text(info ? info->name : 0, definitions);
  bool is_phase = info && info->kind == ContextKind::kPhase;
  bool is_other = range.what.context == kOtherContext;
  std::vector<TimelineArg> args;
  auto add = [&](std::string_view name, const std::string& value) {
    if (!value.empty()) args.push_back({name, std::string_view(value)});
  };
  add("op", known.op);
  add("path", known.path);
  add("domain", known.domain);
  if (range.what.begin_lost) args.push_back({"begin", "not known: records were lost"});
  TimelineLabel label{is_other ? kOtherRange : known.name, is_phase ? "phase" : known.category, {}, args};
  scope_.events.slice(tracks_[on], range.begin, end, label);
}

void HostTimeline::mark(Thread& thread, uint32_t string, uint64_t at, const ProcessDefinitions& definitions) {
  if (thread.in_shown_step) scope_.events.instant(tracks_[track(thread, 0, definitions)], at, {definitions.text(string), "mark", {}});
}

void HostTimeline::launched(Thread& thread, const RecordView& record, const ProcessDefinitions& definitions) {
  constexpr uint8_t kNoActivity = kLaunchFailed | kLaunchCaptured | kLaunchNotCollected;
  if (record.header().flags & kNoActivity || thread.last == 0 || !thread.in_shown_step) return;
  auto number = static_cast<uint32_t>(launches_.size());
  launches_.push_back({.after = thread.last});
  thread.waiting.push_back(number);
  if (thread.ranges.open().empty()) {
    launches_.back().track = track(thread, 0, definitions);
  } else {
    thread.ranges.open().back().what.launches.push_back(number);
  }
  by_correlation_[record.header().id] = number;
  correlations_.push_back(record.header().id);
  if (correlations_.size() <= kMaxLaunches) return;
  by_correlation_.erase(correlations_.front());
  correlations_.pop_front();
}

std::optional<uint32_t> HostTimeline::find_launch(uint32_t correlation, bool single) {
  auto known = by_correlation_.find(correlation);
  if (known == by_correlation_.end()) return std::nullopt;
  uint32_t number = known->second;
  if (single) by_correlation_.erase(known);
  return number;
}

std::optional<Track> HostTimeline::track_of(const HostLaunch& launch) const {
  return launch.track < tracks_.size() ? std::optional(tracks_[launch.track]) : std::nullopt;
}

uint16_t HostTimeline::track(Thread& thread, size_t lane, const ProcessDefinitions& definitions) {
  while (thread.tracks.size() <= lane) {
    auto info = definitions.threads().find(thread.number);
    bool has_number = thread.tracks.empty() && info != definitions.threads().end() && info->second.tid != 0;
    thread.tracks.push_back(static_cast<uint16_t>(std::min<size_t>(tracks_.size(), HostLaunch::kNoTrack)));
    tracks_.push_back({process_, has_number ? info->second.tid : scope_.new_number()});
  }
  return thread.tracks[lane];
}

const HostTimeline::Text& HostTimeline::text(uint32_t string, const ProcessDefinitions& definitions) {
  auto [known, added] = texts_.try_emplace(string);
  if (!added) return known->second;
  const StringInfo* info = definitions.string(string);
  std::string domain(info && info->domain != 0 ? definitions.text(info->domain) : std::string_view());
  NvtxMessage message = parse_nvtx_message(definitions.text(string), domain);
  bool named = message.kind == NvtxMessage::Kind::kLayer || message.kind == NvtxMessage::Kind::kOp;
  bool is_op = message.kind == NvtxMessage::Kind::kOp;
  std::string name = is_op && !message.label.empty() ? message.label : message.name;
  if (!named || name.empty()) name = definitions.text(string);
  known->second = {.category = kRangeCategories[static_cast<size_t>(message.kind)],
                   .name = std::move(name),
                   .op = is_op ? message.name : "",
                   .path = std::move(message.path),
                   .domain = std::move(domain)};
  return known->second;
}

void HostTimeline::finish(const ProcessDefinitions& definitions) {
  for (auto& [number, thread] : threads_) {
    if (!thread.ranges.open().empty()) thread.last = std::max(thread.last + 1, last_time_);
    while (!thread.ranges.open().empty()) close(thread, thread.ranges.open().size() - 1, thread.last, definitions);
  }
  uint64_t position = 0;
  for (auto& [number, thread] : threads_) {
    auto info = definitions.threads().find(number);
    std::string name(info != definitions.threads().end() ? definitions.text(info->second.name) : std::string_view("thread"));
    for (size_t lane = 0; lane < thread.tracks.size(); ++lane) {
      std::string lane_name = lane == 0 ? name : fmt::format("{} (overlapping ranges {})", name, lane);
      scope_.events.track(tracks_[thread.tracks[lane]], lane_name, ++position);
    }
  }
}

}  // namespace lamina
