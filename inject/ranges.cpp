#include "inject/ranges.h"

#include <cstring>
#include <optional>
#include <span>

#include "inject/guarded.h"
#include "inject/recorder.h"

namespace lamina {

using namespace format;

namespace {

uint64_t load(const char* at, size_t size) {
  uint64_t word = 0;
  memcpy(&word, at, size);
  return word;
}

// The last word overlaps the one before, so that nothing is left over byte by byte.
uint64_t hash_text(std::string_view text) {
  constexpr uint64_t kMultiplier = 0xff51afd7ed558ccdu;
  uint64_t hash = text.size() * 0x9e3779b97f4a7c15u;
  const char* at = text.data();
  if (text.size() < 8) return ((hash ^ load(at, text.size())) * kMultiplier) >> 7;
  const char* last = at + text.size() - 8;
  for (; at < last; at += 8) {
    hash = (hash ^ load(at, 8)) * kMultiplier;
    hash ^= hash >> 32;
  }
  return ((hash ^ load(last, 8)) * kMultiplier) >> 7;
}

[[gnu::noinline, gnu::cold]] const StringEntry* find_new_string(Recorder& recorder, ThreadLog::StringCacheEntry& cached, uint64_t hash,
                                                                std::string_view text, uint32_t domain) noexcept {
  return guarded([&] {
    cached = {hash, domain, recorder.definitions.string(text, domain)};
    return cached.entry;
  });
}

// Repeated texts of a thread are found in its cache. Null where the event must be left out.

[[gnu::always_inline]] inline const StringEntry* find_string(Recorder& recorder, ThreadLog& log, std::string_view text, uint32_t domain) {
  uint64_t hash = hash_text(text);
  auto& cached = log.string_cache[hash % ThreadLog::kStringCacheEntries];
  bool found = cached.hash == hash && cached.domain == domain && cached.entry && cached.entry->text == text;
  return found ? cached.entry : find_new_string(recorder, cached, hash, text, domain);
}

uint64_t context_key(uint32_t parent, const StringEntry& name) { return static_cast<uint64_t>(parent) << 32 | name.id; }

uint32_t find_context(Recorder& recorder, ThreadLog& log, uint32_t parent, const StringEntry& name) {
  uint64_t key = context_key(parent, name);
  if (uint32_t known = log.context_cache.find(key)) return known;
  uint32_t context = recorder.definitions.context(parent, name);
  log.context_cache.add(key, context);
  return context;
}

// ---- phases

// Opens a step and, if it is wanted, the window in which kernels are recorded.
uint32_t open_step(Recorder& recorder, const StringEntry& name, bool is_mark) {
  uint64_t opening = recorder.steps.count_opening(name.phase);
  bool collected = recorder.collector.wants(recorder.definitions.text(name.phase), opening);
  StepOpening step_opening{name.phase, name.id, name.found, collected};
  uint32_t step;
  if (is_mark) {
    uint32_t ended = 0;
    step = recorder.steps.open_mark(step_opening, recorder.definitions, &ended);
    recorder.collector.close_step(ended);
  } else {
    step = recorder.steps.open_range(step_opening, recorder.definitions);
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

void close_at(Recorder& recorder, ThreadLog& log, size_t index, uint64_t now) {
  uint32_t step = log.open_ranges()[index].step;
  log.close_at(index, now);
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

// A phase or a module's instance is never open inside of itself: an earlier one was left open by an exception, and so
// was everything inside of it. Should the program pop these after all, the pops must not close what is outside.
void close_abandoned(Recorder& recorder, ThreadLog& log, const StringEntry& pushed, uint64_t now) {
  auto open = log.open_ranges();
  for (size_t i = 0; i < open.size(); ++i) {
    if (open[i].name->id != pushed.id || open[i].start_id != 0) continue;
    log.abandon(i);
    for (size_t last = open.size(); last-- > i;) {
      if (open[last].start_id == 0) close_at(recorder, log, last, now);
    }
    return;
  }
}

// Whether the thread is in a step of this phase by a range of its own: another range of it inside is the same step.
bool is_in_phase(ThreadLog& log, uint32_t phase) {
  const StringEntry* innermost_phase = nullptr;
  for (const OpenRange& range : log.open_ranges()) {
    if (range.step != 0) innermost_phase = range.name;
  }
  return innermost_phase && innermost_phase->phase == phase;
}

[[gnu::noinline]] OpenRange* open_range(Recorder& recorder, ThreadLog& log, const StringEntry& name, uint32_t domain, uint32_t start_id, uint64_t now) {
  if (log.has_start_end()) [[unlikely]] close_ended_ranges(recorder, log);
  if (name.unique && start_id == 0) close_abandoned(recorder, log, name, now);
  bool second = is_in_phase(log, name.phase) || (name.found && recorder.steps.named_is_open());
  bool opens_step = name.phase != 0 && !second;
  log.sync_step();
  uint32_t context = find_context(recorder, log, log.current_context(), name);
  OpenRange* range = log.open(&name, context, domain, start_id, now);
  if (range && opens_step) {
    log.set_own_step(*range, open_step(recorder, name, false));
    if (start_id != 0) recorder.start_end_ranges.set_step(start_id, range->step);
  }
  return range;
}

}  // namespace

const StringEntry* find_string(std::string_view text, uint32_t domain) {
  Recorder& recorder = Recorder::instance();
  ThreadLog* log = recorder.thread_log();
  if (!log || Busy::interrupted()) return nullptr;
  Busy busy;
  return find_string(recorder, *log, text, domain);
}

[[gnu::noinline, gnu::cold]] static int push_unusual(Recorder& recorder, ThreadLog& log, const StringEntry& name, uint32_t domain, uint64_t now) noexcept {
  return guarded([&] {
    OpenRange* range = open_range(recorder, log, name, domain, 0, now);
    return range ? range->level : static_cast<int>(ThreadLog::kMaxDepth);
  });
}

[[gnu::always_inline]] static inline int push(ThreadLog& log, const StringEntry& name, uint32_t domain, uint64_t now) {
  if (log.can_push(domain) && !name.unique) [[likely]] {
    uint32_t context = log.context_cache.find(context_key(log.current_context(), name));
    if (context != 0) [[likely]] return log.push(&name, context, domain, now);
  }
  return push_unusual(Recorder::instance(), log, name, domain, now);
}

// The doors. The thread is in the recorder before anything of its stream, stack or caches is looked at: a handler that
// comes between a look and what follows from it would change them.

int push_range(const StringEntry* name, uint32_t domain) noexcept {
  uint64_t now = host_now();
  ThreadLog* log = Recorder::instance().thread_log();
  if (!log || !name || Busy::interrupted()) [[unlikely]] return -1;
  Busy::set(true);
  int level = push(*log, *name, domain, now);
  Busy::set(false);
  return level;
}

int push_text(std::string_view text) noexcept {
  uint64_t now = host_now();
  Recorder& recorder = Recorder::instance();
  ThreadLog* log = recorder.thread_log();
  if (!log || Busy::interrupted()) [[unlikely]] return -1;
  Busy::set(true);
  const StringEntry* name = find_string(recorder, *log, text, 0);
  int level = name ? push(*log, *name, 0, now) : -1;
  Busy::set(false);
  return level;
}

// A pop that closes a phase, another range than the innermost, or nothing.
[[gnu::noinline, gnu::cold]] static int pop_unusual(Recorder& recorder, ThreadLog& log, uint32_t domain, uint64_t now) noexcept {
  return guarded([&] {
    if (log.has_start_end()) close_ended_ranges(recorder, log);
    int level = log.pop_uncounted();
    if (level >= 0) return level;
    auto index = innermost(log.open_ranges(), domain);
    if (!index) {
      recorder.unbalanced_pops.fetch_add(1, std::memory_order_relaxed);
      return -1;
    }
    level = log.open_ranges()[*index].level;
    close_at(recorder, log, *index, now);
    return level;
  });
}

int pop_range(uint32_t domain) noexcept {
  uint64_t now = host_now();
  Recorder& recorder = Recorder::instance();
  ThreadLog* log = recorder.thread_log();
  if (!log || Busy::interrupted()) [[unlikely]] return -1;
  Busy::set(true);
  int level = log->can_pop(domain) ? log->pop(now) : pop_unusual(recorder, *log, domain, now);
  Busy::set(false);
  return level;
}

void close_ended_ranges(Recorder& recorder, ThreadLog& log) {
  if (!recorder.start_end_ranges.any_ended()) return;
  for (size_t i = log.open_ranges().size(); i-- > 0;) {
    uint32_t id = log.open_ranges()[i].start_id;
    if (id != 0 && recorder.start_end_ranges.take_ended(id)) close_at(recorder, log, i, host_now());
  }
}

uint64_t start_range(const StringEntry* name, uint32_t domain) {
  Recorder& recorder = Recorder::instance();
  ThreadLog* log = recorder.thread_log();
  if (!log || !name || Busy::interrupted()) return 0;
  Busy busy;
  uint32_t id = recorder.start_end_ranges.add();
  if (!open_range(recorder, *log, *name, domain, id, host_now())) recorder.start_end_ranges.remove(id);
  return id;
}

// An id that is not open (ended before, or from before this tool was there) does nothing.
void end_range(uint64_t range) {
  auto id = static_cast<uint32_t>(range);
  Recorder& recorder = Recorder::instance();
  ThreadLog* log = recorder.thread_log();
  if (!log || id == 0 || Busy::interrupted()) return;
  Busy busy;
  auto open = log->open_ranges();
  for (size_t i = open.size(); i-- > 0;) {
    if (open[i].start_id != id) continue;
    recorder.start_end_ranges.remove(id);
    return close_at(recorder, *log, i, host_now());
  }
  // The process leaves the phase at once, not when the owner next looks.
  uint32_t step = recorder.start_end_ranges.end_elsewhere(id);
  if (step != 0) close_step(recorder, step);
}

void end_thread(Recorder& recorder, ThreadLog& log) {
  Busy busy;
  if (log.has_start_end()) close_ended_ranges(recorder, log);
  for (size_t i = log.open_ranges().size(); i-- > 0;) {
    uint32_t id = log.open_ranges()[i].start_id;
    if (id == 0) continue;
    recorder.start_end_ranges.orphan(id);
    log.close_at(i, host_now());
    renew_contexts(recorder, log, i);
  }
  while (!log.open_ranges().empty()) close_at(recorder, log, log.open_ranges().size() - 1, host_now());
}

void mark(const StringEntry* name) {
  Recorder& recorder = Recorder::instance();
  ThreadLog* log = recorder.thread_log();
  if (!log || !name || Busy::interrupted()) return;
  Busy busy;
  log->mark(name->id, host_now());
  if (name->phase != 0) open_step(recorder, *name, true);
}

}  // namespace lamina
