#include "report/attribution/attribution.h"

#include <algorithm>

#include "report/attribution/steps.h"

namespace lamina {

using namespace format;

namespace {

constexpr size_t kMaxFrames = 1024;  // the recorder stops far earlier
constexpr size_t kMaxCachedRoots = 200'000;
constexpr std::string_view kContextMark = "lamina:context ";
constexpr std::string_view kOtherRange = "(other)";

}  // namespace

void Attribution::add(const Chunk& chunk) {
  bool whole = true;
  switch (chunk.header.kind) {
    case ChunkKind::kDefinitions:
      whole = chunk.for_each([&](const RecordView& record) {
        if (!definitions_.add(record)) ++account_.damaged_records;
      });
      break;
    case ChunkKind::kThread: read_thread(chunk); break;
    case ChunkKind::kActivity: read_activity(chunk); break;
    default: break;
  }
  if (!whole) ++account_.damaged_records;
}

// ---- steps and messages

bool Attribution::shown(Thread& thread) const {
  if (thread.shown_step == thread.step) return thread.shown;
  const StepInfo* info = definitions_.step(thread.step);
  thread.shown_step = thread.step;
  return thread.shown = !info || info->collected;
}

// The step's rows; the reference holds until the next step is asked for.
Attribution::StepPlace& Attribution::step_place(uint32_t step) {
  if (last_place_ && last_step_ == step) return *last_place_;
  if (step_places_.size() >= kMaxCachedRoots && !step_places_.contains(step)) step_places_.clear();
  auto [known, added] = step_places_.try_emplace(step);
  last_place_ = &known->second;
  last_step_ = step;
  if (!added) return known->second;
  PhaseStep name = phase_step(definitions_, step, phases_);
  known->second.root = tree_.step(name.phase, name.number);
  if (const StepInfo* info = definitions_.step(step)) {
    auto sequences = parse_nvtx_message(definitions_.text(info->message), {}).sequences;
    if (sequences) tree_.set_sequences(name.phase, name.number, *sequences);
  }
  return known->second;
}

Position Attribution::no_module(uint32_t step) {
  StepPlace& place = step_place(step);
  if (!place.has_no_module) place.no_module = tree_.enter_no_module(place.root);
  place.has_no_module = true;
  return place.no_module;
}

Attribution::Meaning Attribution::meaning_of(NvtxMessage message) {
  bool is_op = message.kind == NvtxMessage::Kind::kOp;
  LayerName name{tree_.name_id(message.name), tree_.name_id(message.path)};
  uint32_t trace = is_op ? name.name : tree_.name_id(call_text(message));
  return {std::move(message), name, trace, ++meaning_count_};
}

const Attribution::Meaning* Attribution::meaning(uint32_t string) {
  auto [known, added] = meanings_.try_emplace(string);
  if (added) {
    const StringInfo* info = definitions_.string(string);
    std::string_view domain = info && info->domain != 0 ? definitions_.text(info->domain) : std::string_view();
    NvtxMessage message = parse_nvtx_message(definitions_.text(string), domain);
    if (message.kind == NvtxMessage::Kind::kContext) account_.context_marks.push_back(message.name);
    known->second = std::make_unique<Meaning>(meaning_of(std::move(message)));
  }
  return known->second.get();
}

// The meaning of a range, by its context.
Attribution::ContextMeaning& Attribution::meaning_of_context(uint32_t context, const ContextInfo* info) {
  if (context == kOtherContext) {
    if (!other_range_) other_range_ = std::make_unique<Meaning>(meaning_of(parse_nvtx_message(kOtherRange, {})));
    return unknown_context_ = {.meaning = other_range_.get()};
  }
  if (!info) return unknown_context_ = {.meaning = meaning(0)};
  if (context >= context_meanings_.size()) context_meanings_.resize(definitions_.contexts());
  ContextMeaning& known = context_meanings_[context];
  if (!known.meaning) known.meaning = meaning(info->name);
  return known;
}

// What a call and the one directly inside of it are together; null when they are two.
const Attribution::Meaning* Attribution::joined(const Meaning* outer, const Meaning* inner) {
  auto [known, added] = joined_.try_emplace(static_cast<uint64_t>(outer->id) << 32 | inner->id);
  if (!added) return *known;
  if (const NvtxMessage* better = better_twin(outer->message, inner->message)) {
    *known = better == &outer->message ? outer : inner;
  } else if (auto module = joined_module(outer->message, inner->message)) {
    *known = joined_meanings_.emplace_back(std::make_unique<Meaning>(meaning_of(std::move(*module)))).get();
  }
  return *known;
}

// ---- a thread's stream

void Attribution::read_thread(const Chunk& chunk) {
  Thread& thread = threads_[chunk.header.thread];
  if (uint32_t missing = chunk.header.sequence - thread.next_sequence; missing != 0) {
    account_.lost_pieces += missing <= INT32_MAX ? missing : 1;  // else one that should have come before
    settle(thread);
    leave_stack(thread);
    if (!thread.lost) thread.before_loss = std::move(thread.frames);
    thread.lost = true;
    thread.frames.clear();
    thread.forget(0);
    thread.native_frames = thread.frames_inside = 0;
    thread.stack = 0;
    thread.context_since = kRootContext;
  }
  thread.next_sequence = chunk.header.sequence + 1;
  bool whole = chunk.for_each([&](const RecordView& record) { read_thread_record(chunk.header.thread, thread, record); });
  if (!whole) ++account_.damaged_records;
  forget_old();
}

void Attribution::read_thread_record(uint32_t id, Thread& thread, const RecordView& record) {
  ++order_;
  bool is_range = record.header().kind == RecordKind::kPush || record.header().kind == RecordKind::kPop;
  if (thread.lost && is_range) return;
  switch (record.header().kind) {
    case RecordKind::kThreadState: return restore(thread, record);
    case RecordKind::kStepChange:
      settle(thread);
      thread.step = counted_step(definitions_, record.header().id, phases_);
      return;
    case RecordKind::kLaunch: return launch(thread, record);
    case RecordKind::kCallStack: thread.stack = record.header().id; return;
    case RecordKind::kPush:
      if (thread.lost) return;
      if (auto push_record = record.as<PushRecord>()) push(thread, record.header().id, push_record->time);
      return;
    case RecordKind::kPop:
      if (thread.lost) return;
      if (auto pop_record = record.as<PopRecord>()) pop(thread, record.header().id, pop_record->time);
      return;
    case RecordKind::kMark: {
      std::string_view text = definitions_.text(record.header().id);
      if (text.starts_with(kContextMark)) account_.context_marks.emplace_back(text.substr(kContextMark.size()));
      return;
    }
    default: return graph_record(id, thread, record);
  }
}

// The open calls as the recorder says them. Normally they are what was read; after a loss they are not.
void Attribution::restore(Thread& thread, const RecordView& record) {
  auto state = record.as<ThreadStateRecord>();
  if (!state) return;
  leave_stack(thread);
  thread.stack = 0;
  auto bytes = record.behind<ThreadStateRecord>();
  std::vector<Frame> known = std::move(thread.lost ? thread.before_loss : thread.frames);
  thread.frames.clear();
  thread.forget(0);
  thread.step = counted_step(definitions_, state->step, phases_);
  for (size_t at = 0; at + sizeof(OpenCall) <= bytes.size(); at += sizeof(OpenCall)) {
    OpenCall open;
    memcpy(&open, bytes.data() + at, sizeof(open));
    auto same = std::find_if(known.begin(), known.end(), [&](const Frame& frame) { return frame.call == open.call; });
    if (same != known.end()) {
      thread.frames.push_back(*same);
    } else {
      thread.calls = open.call - 1;
      push(thread, open.context, 0);
    }
  }
  thread.calls = state->calls;
  thread.lost = false;
}

// After a loss: calls that stand for those open at a launch, by its context.
void Attribution::stand_in(Thread& thread, uint32_t context) {
  if (context == thread.context_since) return;
  thread.context_since = context;
  settle(thread);
  thread.frames.clear();
  thread.forget(0);
  thread.native_frames = thread.frames_inside = 0;
  std::vector<uint32_t> chain;
  for (const ContextInfo* info = definitions_.context(context); info; info = definitions_.context(info->parent)) {
    chain.push_back(context);
    context = info->parent;
  }
  while (!chain.empty()) {
    push(thread, chain.back(), 0);
    chain.pop_back();
  }
}

void Attribution::push(Thread& thread, uint32_t context, uint64_t time) {
  leave_stack(thread);
  if (thread.frames.size() >= kMaxFrames) {
    ++account_.damaged_records;
    return;
  }
  const ContextInfo* info = definitions_.context(context);
  bool is_phase = info && info->kind == ContextKind::kPhase;
  ContextMeaning& call = meaning_of_context(context, info);
  ++thread.calls;
  uint32_t twin_of = is_phase ? 0 : join_twin(thread, call);
  settle(thread);
  Frame& frame = thread.frames.emplace_back();
  frame.call = thread.calls;
  frame.meaning = call.meaning;
  frame.is_phase = is_phase;
  frame.twin_of = twin_of;
  frame.begin = time;
  frame.order = order_;
}

// Gives the innermost call its place, if it has none yet: a call gets it with the next event of its thread.
void Attribution::settle(Thread& thread) {
  if (thread.frames.empty() || thread.frames.back().settled) return;
  thread.frames.back().settled = true;
  if (shown(thread)) thread.frames.back().home = inside(thread, thread.frames.size()).position;
}

// Finds out whether a new call is the one that directly encloses it, told twice: by Lamina's hook and by a marker of the
// program. Then the inner range counts for nothing, and the outer one is what both say; only as a layer that already has
// a place, since kernels were launched between the two, it stays what it was.
// Gives the number of that call; 0: they are two.
uint32_t Attribution::join_twin(Thread& thread, ContextMeaning& inner) {
  auto outer = std::find_if(thread.frames.rbegin(), thread.frames.rend(), [](const Frame& frame) {
    return frame.twin_of != 0 || frame.is_layer() || frame.is(NvtxMessage::Kind::kOp);
  });
  if (outer == thread.frames.rend() || outer->has_twin || outer->twin_of != 0) return 0;
  if (inner.outer != outer->meaning) inner = {inner.meaning, outer->meaning, joined(outer->meaning, inner.meaning)};
  const Meaning* call = inner.joined;
  if (!call) return 0;
  outer->has_twin = true;
  if (outer->is_layer() && outer->settled) return outer->call;
  outer->meaning = call;
  outer->captured = nullptr;
  outer->settled = false;
  thread.forget(static_cast<size_t>(&*outer - thread.frames.data()));
  return outer->call;
}

void Attribution::pop(Thread& thread, uint32_t index, uint64_t time) {
  leave_stack(thread);
  if (index >= thread.frames.size()) {
    ++account_.damaged_records;
    return;
  }
  settle(thread);
  const Frame& frame = thread.frames[index];
  if (frame.is_layer() && frame.begin != 0 && time > frame.begin && frame.home != Position{}) {
    tree_.add_cpu_time(frame.home, static_cast<double>(time - frame.begin) / 1000);
  }
  uint32_t call = frame.call;
  thread.frames.erase(thread.frames.begin() + index);
  thread.forget(index);
  // Overlapping ranges: what was inside of the closed one goes on in another place, and its twin on its own.
  for (size_t i = index; i < thread.frames.size(); ++i) {
    Frame& inside = thread.frames[i];
    inside.in_steps = {}, inside.idle = {};
    if (inside.twin_of == call) inside.twin_of = 0;
  }
}

// Where the call is in the step, if it was seen there; else the place of the step seen longest ago.
Attribution::Placed& Attribution::placed_in(Frame& frame, uint32_t step) {
  if (step < kFirstStep) return frame.idle;
  Placed& last = frame.in_steps.front();
  if (last.step == step || last.step == UINT32_MAX) return last;  // this one, or none yet
  auto known = std::find_if(frame.in_steps.begin(), frame.in_steps.end(), [&](const Placed& p) { return p.step == step; });
  auto end = known != frame.in_steps.end() ? known + 1 : known;
  std::rotate(frame.in_steps.begin(), end - 1, end);
  return frame.in_steps.front();
}

// What the outermost so many calls are together. Layers not yet seen in the thread's step are entered.
const Attribution::Inside& Attribution::inside(Thread& thread, size_t frames) {
  if (thread.known_step != thread.step) {
    thread.known_step = thread.step;
    thread.known = 0;
    thread.outside.position = root(thread.step);
  }
  for (; thread.known < frames; ++thread.known) {
    const Inside& outer = thread.known > 0 ? thread.frames[thread.known - 1].inside : thread.outside;
    enter_frame(thread, thread.known, outer, thread.frames[thread.known].inside);
  }
  return frames > 0 ? thread.frames[frames - 1].inside : thread.outside;
}

// What all calls are together. The functions that launch a graph are entered only if something in it needs them.
const Attribution::Inside& Attribution::around_launch(Thread& thread, bool is_graph) {
  if (!shown(thread)) return thread.nowhere;
  size_t entered = thread.frames.size() - (is_graph ? thread.native_frames : 0);
  if (entered == thread.frames.size()) return inside(thread, entered);
  thread.beyond = inside(thread, entered);
  for (size_t i = entered; i < thread.frames.size(); ++i) add_frame(thread, i, thread.beyond, thread.beyond);
  return thread.beyond;
}

// What the calls are together with the next one, which is at this index and is entered.
void Attribution::enter_frame(Thread& thread, size_t index, const Inside& outer, Inside& here) {
  Frame& frame = thread.frames[index];
  add_frame(thread, index, outer, here);
  here.position = outer.position;
  if (!frame.is_layer()) return;
  if (frame.is(NvtxMessage::Kind::kLeftOut)) here.position = thread.outside.position;
  Placed& placed = placed_in(frame, thread.step);
  if (placed.step != thread.step) placed = {thread.step, tree_.enter(here.position, frame.meaning->name, {frame.order, 0})};
  here.position = placed.position;
}

// All but the place.
void Attribution::add_frame(const Thread& thread, size_t index, const Inside& outer, Inside& here) {
  const Frame& frame = thread.frames[index];
  bool is_layer = frame.is_layer();
  here.trace = is_layer ? 0 : frame.is(NvtxMessage::Kind::kOp) ? add_op(thread, index, outer.trace) : outer.trace;
  here.layer_trace = is_layer ? frame.meaning->trace : outer.layer_trace;
  here.in_layer = outer.in_layer || (is_layer && !frame.is_native);
}

bool add_to_trace(std::string& trace, std::string_view op) {
  constexpr size_t kMaxTraceBytes = 16u << 10;
  if (trace.size() + op.size() > kMaxTraceBytes && !trace.empty()) return false;
  if (!trace.empty()) trace += " <- ";
  trace += op;
  return true;
}

// The trace of the ops inside of the innermost layer, innermost first: those down to the one at this index. `outer`: of those
// outside of it, which is all that the result depends on besides it.
uint32_t Attribution::add_op(const Thread& thread, size_t index, uint32_t outer) {
  uint32_t op = thread.frames[index].meaning->name.name;
  if (outer == 0) return op;
  auto [known, added] = op_traces_.try_emplace(static_cast<uint64_t>(outer) << 32 | op);
  if (!added) return *known;
  std::string trace;
  for (size_t i = index + 1; i-- > 0;) {
    const Frame& open = thread.frames[i];
    if (open.is_layer()) break;
    if (open.is(NvtxMessage::Kind::kOp) && !add_to_trace(trace, open.meaning->message.name)) break;
  }
  return *known = tree_.name_id(trace);
}

void Attribution::launch(Thread& thread, const RecordView& record) {
  auto launched = record.as<LaunchRecord>();
  if (!launched) return;
  uint8_t flags = record.header().flags;
  if (flags & kLaunchFailed) return void(++account_.failed);
  if (flags & kLaunchCaptured) return void(++account_.captured);
  if (flags & kLaunchNotCollected) return void(++account_.not_collected);
  if (thread.lost) stand_in(thread, launched->context);
  settle(thread);
  enter_stack(thread);
  auto kind = static_cast<LaunchKind>(flags & kLaunchKindMask);
  bool is_graph = kind == LaunchKind::kGraph;
  const Inside& place = around_launch(thread, is_graph);
  uint32_t correlation = record.header().id;
  Launch& entry = launches_[correlation];
  entry.kind = kind;
  entry.shown = shown(thread);
  entry.in_layer = place.in_layer;
  entry.step = thread.step;
  entry.position = place.position;
  entry.trace = place.trace != 0 ? place.trace : place.layer_trace;
  entry.order = order_;
  if (is_graph) {
    GraphLaunchPtr graph = graph_launch(thread, entry, *launched);
    graph->ops_trace = place.trace;
    graph_launches_[correlation] = std::move(graph);
  }
  ++account_.launches[static_cast<size_t>(kind)];
  if (kind == LaunchKind::kKernel) ++missing_in_step_[thread.step];
  launch_ages_.emplace_back(correlation, order_);
  if (!unlaunched_.empty()) join_waiting(correlation);
}

Attribution::GraphLaunchPtr Attribution::graph_launch(Thread& thread, const Launch& launch, const LaunchRecord& record) {
  auto graph = std::make_shared<GraphLaunch>(launch);
  graph->native_trace = thread.native_frames > 0;
  graph->exec = record.graph_exec;
  graph->graph_sequence = full_sequence(record.graph_sequence);
  for (Frame& frame : thread.frames) {
    if (!frame.is_layer() || !launch.shown) continue;
    if (frame.is(NvtxMessage::Kind::kLeftOut)) graph->layers.clear();
    if (frame.is_native) {
      graph->native_layers.push_back(frame.meaning->name);
    } else {
      graph->layers.push_back({frame.meaning->name, placed_in(frame, thread.step).position});
    }
  }
  if (graph->exec != 0) last_launches_[graph->exec] = graph;
  return graph;
}

// What has run under this id before its launch was read.
void Attribution::join_waiting(uint32_t correlation) {
  auto waiting = unlaunched_.find(correlation);
  if (waiting == unlaunched_.end()) return;
  std::vector<Activity> activities = std::move(waiting->second);
  unlaunched_.erase(waiting);
  unlaunched_count_ -= activities.size();
  for (const Activity& activity : activities) join(activity);
}

}  // namespace lamina
