#include "inject/ranges.h"

#include <cstring>
#include <optional>
#include <span>

#include "inject/recorder.h"

namespace lamina {

using namespace format;

namespace {

uint64_t hash_text(std::string_view text) {
  uint64_t hash = text.size() * 0x9e3779b97f4a7c15u;
  const char* at = text.data();
  size_t left = text.size();
  for (; left >= 8; at += 8, left -= 8) {
    uint64_t word;
    memcpy(&word, at, 8);
    hash = (hash ^ word) * 0xff51afd7ed558ccdu;
    hash ^= hash >> 29;
  }
  uint64_t tail = 0;
  memcpy(&tail, at, left);
  hash = (hash ^ tail) * 0xff51afd7ed558ccdu;
  return hash ^ hash >> 29;
}

uint32_t find_context(Recorder& recorder, ThreadLog& log, uint32_t parent, const StringEntry& name) {
  auto& entry = log.context_cache[(parent * 0x9e3779b1u ^ name.id * 0x85ebca6bu) % ThreadLog::kCacheEntries];
  if (entry.context != 0 && entry.parent == parent && entry.name == name.id) [[likely]] return entry.context;
  entry = {parent, name.id, recorder.definitions.context(parent, name)};
  return entry.context;
}

// ---- phases

// Opens a step and, if it is wanted, the window in which kernels are recorded.
uint32_t open_step(Recorder& recorder, const StringEntry& name, bool is_mark) {
  uint64_t opening = recorder.steps.count_opening(name.phase);
  bool collected = recorder.collector.wants(recorder.definitions.text(name.phase), opening);
  uint32_t step;
  if (is_mark) {
    uint32_t ended = 0;
    step = recorder.steps.open_mark(name.phase, collected, recorder.definitions, &ended);
    recorder.collector.close_step(ended);
  } else {
    step = recorder.steps.open_range(name.phase, collected, recorder.definitions);
  }
  if (collected) recorder.collector.open_step(step);
  return step;
}

void close_step(Recorder& recorder, uint32_t step) {
  recorder.steps.close_range(step, recorder.definitions);
  recorder.collector.close_step(step);
}

// ---- the stack

// Ranges of several domains, and started ones, may overlap: those inside of a closed one now have another context.
void renew_contexts(Recorder& recorder, ThreadLog& log, size_t from) {
  auto open = log.open_ranges();
  uint32_t parent = from > 0 ? open[from - 1].context : format::kRootContext;
  for (OpenRange& range : open.subspan(from)) parent = range.context = find_context(recorder, log, parent, *range.name);
}

void close_at(Recorder& recorder, ThreadLog& log, size_t index) {
  uint32_t step = log.open_ranges()[index].step;
  log.close_at(index);
  if (index < log.open_ranges().size()) [[unlikely]] renew_contexts(recorder, log, index);
  if (step != 0) [[unlikely]] close_step(recorder, step);
}

// The innermost pushed range of the domain; nothing when there is none.
std::optional<size_t> innermost(std::span<const OpenRange> open, uint32_t domain) {
  for (size_t i = open.size(); i-- > 0;) {
    if (open[i].domain == domain && open[i].start_id == 0) return i;
  }
  return std::nullopt;
}

bool same_unique(const StringEntry& open, const StringEntry& pushed) {
  return open.id == pushed.id || (open.phase != 0 && open.phase == pushed.phase);
}

// A phase or a module's instance is never open inside of itself: an earlier one was left open by an exception, and so
// was everything inside of it.
void close_abandoned(Recorder& recorder, ThreadLog& log, const StringEntry& pushed) {
  auto open = log.open_ranges();
  for (size_t i = 0; i < open.size(); ++i) {
    if (!open[i].name->unique || !same_unique(*open[i].name, pushed)) continue;
    log.forget_beyond_depth();
    for (size_t last = open.size(); last-- > i;) close_at(recorder, log, last);
    return;
  }
}

OpenRange* open_range(Recorder& recorder, ThreadLog& log, const StringEntry& name, uint32_t domain, uint64_t start_id) {
  if (log.has_start_end()) [[unlikely]] close_ended_ranges(recorder, log);
  if (name.unique) [[unlikely]] close_abandoned(recorder, log, name);
  log.sync_step();
  uint32_t context = find_context(recorder, log, log.current_context(), name);
  OpenRange* range = log.open(&name, context, domain, start_id);
  if (range && name.phase != 0) [[unlikely]] {
    log.set_own_step(*range, open_step(recorder, name, false));
    if (start_id != 0) recorder.start_end_ranges.set_step(start_id, range->step);
  }
  return range;
}

}  // namespace

const StringEntry* find_string(std::string_view text, uint32_t domain) {
  Recorder& recorder = Recorder::instance();
  ThreadLog* log = recorder.thread_log();
  if (!log) return nullptr;
  uint64_t hash = hash_text(text);
  auto& cached = log->string_cache[hash % ThreadLog::kCacheEntries];
  if (cached.entry && cached.hash == hash && cached.domain == domain && cached.entry->text == text) [[likely]] {
    return cached.entry;
  }
  cached = {hash, domain, recorder.definitions.string(text, domain)};
  return cached.entry;
}

int push_range(const StringEntry* name, uint32_t domain) {
  Recorder& recorder = Recorder::instance();
  ThreadLog* log = recorder.thread_log();
  if (!log || !name) return -1;
  OpenRange* range = open_range(recorder, *log, *name, domain, 0);
  return range ? range->level : static_cast<int>(ThreadLog::kMaxDepth);
}

int pop_range(uint32_t domain) {
  Recorder& recorder = Recorder::instance();
  ThreadLog* log = recorder.thread_log();
  if (!log) return -1;
  if (log->has_start_end()) [[unlikely]] close_ended_ranges(recorder, *log);
  int level = log->pop_beyond_depth();
  if (level >= 0) [[unlikely]] return level;
  auto index = innermost(log->open_ranges(), domain);
  if (!index) {
    recorder.unbalanced_pops.fetch_add(1, std::memory_order_relaxed);
    return -1;
  }
  level = log->open_ranges()[*index].level;
  close_at(recorder, *log, *index);
  return level;
}

void close_ended_ranges(Recorder& recorder, ThreadLog& log) {
  if (!recorder.start_end_ranges.any_ended()) return;
  for (size_t i = log.open_ranges().size(); i-- > 0;) {
    uint64_t id = log.open_ranges()[i].start_id;
    if (id != 0 && recorder.start_end_ranges.take_ended(id)) close_at(recorder, log, i);
  }
}

uint64_t start_range(const StringEntry* name, uint32_t domain) {
  Recorder& recorder = Recorder::instance();
  ThreadLog* log = recorder.thread_log();
  if (!log || !name) return 0;
  uint64_t id = recorder.start_end_ranges.add();
  if (!open_range(recorder, *log, *name, domain, id)) recorder.start_end_ranges.remove(id);
  return id;
}

// An id that is not open (ended before, or from before this tool was there) does nothing.
void end_range(uint64_t id) {
  Recorder& recorder = Recorder::instance();
  ThreadLog* log = recorder.thread_log();
  if (!log || id == 0) return;
  auto open = log->open_ranges();
  for (size_t i = open.size(); i-- > 0;) {
    if (open[i].start_id != id) continue;
    recorder.start_end_ranges.remove(id);
    return close_at(recorder, *log, i);
  }
  // The process leaves the phase at once, not when the owner next looks.
  uint32_t step = recorder.start_end_ranges.end_elsewhere(id);
  if (step != 0) close_step(recorder, step);
}

void close_all_ranges(Recorder& recorder, ThreadLog& log) {
  while (!log.open_ranges().empty()) close_at(recorder, log, log.open_ranges().size() - 1);
}

void mark(const StringEntry* name) {
  Recorder& recorder = Recorder::instance();
  ThreadLog* log = recorder.thread_log();
  if (!log || !name) return;
  log->mark(name->id, host_now());
  if (name->phase != 0) open_step(recorder, *name, true);
}

}  // namespace lamina
