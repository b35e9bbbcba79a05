#include "report/attribution/attribution.h"

#include <algorithm>

#include "report/attribution/steps.h"

namespace lamina {

using namespace format;

namespace {

constexpr size_t kMaxFrames = 1024;  // the recorder stops far earlier
constexpr size_t kMaxCachedRoots = 10'000;
constexpr size_t kMaxWaitingGraphEvents = 200'000;
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

bool Attribution::shown(uint32_t step) const {
  const StepInfo* info = definitions_.step(step);
  return !info || info->collected;
}

Position Attribution::root(uint32_t step) {
  auto [known, added] = roots_.try_emplace(step);
  if (!added) return known->second;
  if (roots_.size() > kMaxCachedRoots) {
    roots_.clear();
    known = roots_.try_emplace(step).first;
  }
  PhaseStep name = phase_step(definitions_, step, phases_);
  known->second = tree_.step(name.phase, name.number);
  if (const StepInfo* info = definitions_.step(step)) {
    auto sequences = parse_nvtx_message(definitions_.text(info->message), {}).sequences;
    if (sequences) tree_.set_sequences(name.phase, name.number, *sequences);
  }
  return known->second;
}

Position Attribution::no_module(uint32_t step) {
  if (no_module_.size() > kMaxCachedRoots) no_module_.clear();
  auto [known, added] = no_module_.try_emplace(step);
  if (added) known->second = tree_.enter_no_module(root(step));
  return known->second;
}

Attribution::Meaning Attribution::meaning_of(NvtxMessage message) {
  bool is_op = message.kind == NvtxMessage::Kind::kOp;
  LayerName name{tree_.name_id(message.name), tree_.name_id(message.path)};
  uint32_t trace = is_op ? name.name : tree_.name_id(call_text(message));
  return {std::move(message), name, trace};
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

// What a call and the one directly inside of it are together; null when they are two.
const Attribution::Meaning* Attribution::joined(const Meaning* outer, const Meaning* inner) {
  const NvtxMessage* better = better_twin(outer->message, inner->message);
  if (better) return better == &outer->message ? outer : inner;
  auto known = joined_.find({outer, inner});
  if (known != joined_.end()) return known->second.get();
  auto module = joined_module(outer->message, inner->message);
  if (!module) return nullptr;
  return (joined_[{outer, inner}] = std::make_unique<Meaning>(meaning_of(std::move(*module)))).get();
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
  if (!other_range_) other_range_ = std::make_unique<Meaning>(meaning_of(parse_nvtx_message(kOtherRange, {})));
  const ContextInfo* info = definitions_.context(context);
  Frame frame{};
  frame.call = ++thread.calls;
  frame.begin = time;
  frame.order = order_;
  frame.is_phase = info && info->kind == ContextKind::kPhase;
  frame.meaning = context == kOtherContext ? other_range_.get() : meaning(info ? info->name : 0);
  join_twin(thread, frame);
  settle(thread);
  thread.frames.push_back(std::move(frame));
}

// Gives the innermost call its place, if it has none yet: a call gets it with the next event of its thread.
void Attribution::settle(Thread& thread) {
  if (thread.frames.empty() || thread.frames.back().settled) return;
  thread.frames.back().settled = true;
  if (shown(thread.step)) thread.frames.back().home = place(thread, thread.frames.size());
}

// Finds out whether a new call is the one that directly encloses it, told twice: by Lamina's hook and by a marker of the
// program. Then the inner range counts for nothing, and the outer one is what both say; only as a layer that already has
// a place, since kernels were launched between the two, it stays what it was.
void Attribution::join_twin(Thread& thread, Frame& inner) {
  auto outer = std::find_if(thread.frames.rbegin(), thread.frames.rend(), [](const Frame& frame) {
    return frame.twin_of != 0 || frame.is_layer() || frame.is(NvtxMessage::Kind::kOp);
  });
  if (inner.is_phase || outer == thread.frames.rend() || outer->has_twin || outer->twin_of != 0) return;
  const Meaning* call = joined(outer->meaning, inner.meaning);
  if (!call) return;
  inner.twin_of = outer->call;
  outer->has_twin = true;
  if (outer->is_layer() && outer->settled) return;
  outer->meaning = call;
  outer->captured = nullptr;
  outer->settled = false;
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
  auto known = std::find_if(frame.in_steps.begin(), frame.in_steps.end(), [&](const Placed& p) { return p.step == step; });
  auto end = known != frame.in_steps.end() ? known + 1 : known;
  std::rotate(frame.in_steps.begin(), end - 1, end);
  return frame.in_steps.front();
}

// The innermost layer of the outermost so many calls, as it stands in the thread's step. Layers not yet seen there are entered.
Position Attribution::place(Thread& thread, size_t frames) {
  uint32_t step = thread.step;
  Position at = root(step);
  for (Frame& frame : std::span(thread.frames).first(frames)) {
    if (!frame.is_layer()) continue;
    if (frame.is(NvtxMessage::Kind::kLeftOut)) at = root(step);
    Placed& placed = placed_in(frame, step);
    if (placed.step != step) placed = {step, tree_.enter(at, frame.meaning->name, {frame.order, 0})};
    at = placed.position;
  }
  return at;
}

bool add_to_trace(std::string& trace, std::string_view op) {
  constexpr size_t kMaxTraceBytes = 16u << 10;
  if (trace.size() + op.size() > kMaxTraceBytes && !trace.empty()) return false;
  if (!trace.empty()) trace += " <- ";
  trace += op;
  return true;
}

// The ops open inside of the innermost layer, innermost first.
uint32_t Attribution::trace_of(const Thread& thread) {
  std::string trace;
  for (size_t i = thread.frames.size(); i-- > 0;) {
    const Frame& open = thread.frames[i];
    if (open.is_layer()) break;
    if (open.is(NvtxMessage::Kind::kOp) && !add_to_trace(trace, open.meaning->message.name)) break;
  }
  return tree_.name_id(trace);
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
  auto entry = std::make_shared<Launch>();
  entry->kind = static_cast<LaunchKind>(flags & kLaunchKindMask);
  entry->shown = shown(thread.step);
  entry->step = thread.step;
  entry->exec = launched->graph_exec;
  if (entry->kind == LaunchKind::kGraph) entry->graph_sequence = full_sequence(launched->graph_sequence);
  entry->order = order_;
  if (entry->shown) {
    bool is_graph = entry->kind == LaunchKind::kGraph;
    entry->position = place(thread, thread.frames.size() - (is_graph ? thread.native_frames : 0));
    entry->trace = trace_of(thread);
    entry->native_trace = thread.native_frames > 0;
  }
  for (Frame& frame : thread.frames) {
    if (!frame.is_layer()) continue;
    if (!frame.is_native) entry->in_layer = true;
    entry->layer_trace = frame.meaning->trace;
    if (entry->kind != LaunchKind::kGraph) continue;
    if (frame.is(NvtxMessage::Kind::kLeftOut)) entry->layers.clear();
    if (frame.is_native) {
      entry->native_layers.push_back(frame.meaning->name);
    } else {
      entry->layers.push_back({frame.meaning->name, placed_in(frame, thread.step).position});
    }
  }
  ++account_.launches[static_cast<size_t>(entry->kind)];
  if (entry->kind == LaunchKind::kKernel) ++account_.missing_in_step[thread.step];
  if (entry->exec != 0) last_launches_[entry->exec] = entry;
  uint32_t correlation = record.header().id;
  launches_[correlation] = entry;
  launch_ages_.emplace_back(correlation, order_);
  if (auto waiting = unlaunched_.find(correlation); waiting != unlaunched_.end()) {
    std::vector<Activity> activities = std::move(waiting->second);
    unlaunched_.erase(waiting);
    unlaunched_count_ -= activities.size();
    for (const Activity& activity : activities) join(activity);
  }
}

// ---- graphs

// The open calls, outermost first, as the chain that nodes created now keep.
CapturedCallPtr Attribution::capture(Thread& thread) {
  CapturedCallPtr chain;
  for (Frame& frame : thread.frames) {
    bool is_op = frame.is(NvtxMessage::Kind::kOp);
    if (!is_op && !frame.is_layer()) continue;
    bool left_out = frame.is(NvtxMessage::Kind::kLeftOut);
    if (left_out) chain = nullptr;
    if (!frame.captured || frame.captured->parent != chain) {
      auto call = std::make_shared<CapturedCall>();
      call->parent = chain;
      call->name = frame.meaning->name;
      call->trace = frame.meaning->trace;
      call->is_op = is_op;
      call->is_native = frame.is_native;
      call->in_range = (chain && chain->in_range) || (!is_op && !frame.is_native);
      call->left_out = left_out;
      call->depth = chain ? chain->depth + (chain->is_op ? 0 : 1) : 0;
      call->order = frame.order;
      frame.captured = std::move(call);
    }
    chain = frame.captured;
  }
  return chain;
}

// The full number from its low half: the nearest to the one expected next.
uint64_t Attribution::full_sequence(uint32_t low) const {
  int64_t ahead = static_cast<int32_t>(low - static_cast<uint32_t>(next_graph_event_));
  return static_cast<uint64_t>(std::max<int64_t>(0, static_cast<int64_t>(next_graph_event_) + ahead));
}

// Keeps the event until all before it are applied: threads are read one after the other.
void Attribution::graph_record(uint32_t id, Thread& thread, const RecordView& record) {
  bool is_graph_record = record.header().kind >= RecordKind::kGraphCreated && record.header().kind <= RecordKind::kGraphNodeSetParams;
  auto header = record.as<GraphHeader>();
  if (!is_graph_record || !header) return;
  bool placed = record.header().kind == RecordKind::kGraphNode || record.header().kind == RecordKind::kGraphNodeSetParams;
  if (placed) {
    settle(thread);
    enter_stack(thread);
  }
  CapturedCallPtr call = placed ? capture(thread) : nullptr;
  uint64_t sequence = full_sequence(header->sequence);
  if (sequence < next_graph_event_) return;
  if (sequence == next_graph_event_) {
    apply_graph_event(id, record, std::move(call), order_);
    ++next_graph_event_;
    return apply_graph_events(false);
  }
  std::vector<char> bytes = record.copy();
  graph_events_[sequence] = [this, id, bytes = std::move(bytes), call = std::move(call), order = order_] {
    RecordHeader copied;
    memcpy(&copied, bytes.data(), sizeof(copied));
    apply_graph_event(id, RecordView(copied, bytes), call, order);
  };
  if (graph_events_.size() > kMaxWaitingGraphEvents) apply_graph_events(true);
}

// Those that are next; with `all` over gaps too, where records were lost, and no replay waits for more.
void Attribution::apply_graph_events(bool all) {
  while (!graph_events_.empty() && (all || graph_events_.begin()->first == next_graph_event_)) {
    next_graph_event_ = graph_events_.begin()->first;
    graph_events_.begin()->second();
    ++next_graph_event_;
    graph_events_.erase(graph_events_.begin());
  }
  if (!graph_events_.empty() || waiting_for_graph_.empty()) return;
  for (const auto& [activity, launch] : waiting_for_graph_) {
    if (all) next_graph_event_ = std::max(next_graph_event_, launch->graph_sequence);
  }
  auto waiting = std::move(waiting_for_graph_);
  waiting_for_graph_.clear();
  for (auto& [activity, launch] : waiting) attribute_replay(activity, launch);
}

void Attribution::apply_graph_event(uint32_t thread, const RecordView& record, CapturedCallPtr call, uint64_t order) {
  uint32_t id = record.header().id;
  uint32_t other = record.as<GraphHeader>()->graph;
  graphs_.set_sequence(next_graph_event_);
  switch (record.header().kind) {
    case RecordKind::kGraphCreated:
      if (record.header().flags & kGraphCloned) return graphs_.graph_cloned(thread, id);
      return graphs_.graph_created(thread, id);
    case RecordKind::kGraphNode:
      if (auto node = record.as<GraphNodeRecord>()) graphs_.node_created(thread, node->node, std::move(call), other, order);
      return;
    case RecordKind::kGraphNodeCloned:
      if (auto node = record.as<GraphNodeClonedRecord>()) graphs_.node_cloned(node->node, node->original);
      return;
    case RecordKind::kGraphExec: return graphs_.exec_created(thread, id);
    case RecordKind::kGraphDestroyed: return graphs_.graph_destroyed(id);
    case RecordKind::kGraphExecDestroyed: return graphs_.exec_destroyed(id);
    case RecordKind::kGraphNodeUpdated:
      if (auto node = record.as<GraphNodeUpdatedRecord>()) graphs_.node_updated(id, node->node, node->source);
      return;
    case RecordKind::kGraphExecUpdated: return graphs_.exec_updated(id, other);
    case RecordKind::kGraphNodeSetParams:
      if (auto node = record.as<GraphNodeSetParamsRecord>()) graphs_.set_params(node->node, other, std::move(call), order);
      return;
    default: return;
  }
}

}  // namespace lamina
