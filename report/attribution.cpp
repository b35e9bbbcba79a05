#include "report/attribution.h"

#include <algorithm>

namespace lamina {

using namespace format;

namespace {

constexpr size_t kMaxFrames = 1024;  // the recorder stops far earlier
constexpr size_t kMaxCachedRoots = 10'000;
constexpr size_t kMaxWaitingGraphEvents = 200'000;
constexpr std::string_view kContextMark = "lamina:context ";
constexpr std::string_view kStartup = "startup";
constexpr std::string_view kNoPhase = "(none)";
constexpr std::string_view kWholeRun = "all";
const NvtxMessage kOtherRange{NvtxMessage::Kind::kLayer, "(other)"};  // kOtherContext

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
  if (const StepInfo* info = definitions_.step(step)) {
    known->second = tree_.step(definitions_.text(info->phase), info->number);
  } else if (step == kNoStep) {
    known->second = tree_.step(kNoPhase, 1);
  } else {
    known->second = tree_.step(has_phases_ ? kStartup : kWholeRun, 1);
  }
  return known->second;
}

Position Attribution::no_module(uint32_t step) {
  if (no_module_.size() > kMaxCachedRoots) no_module_.clear();
  auto [known, added] = no_module_.try_emplace(step);
  if (added) known->second = tree_.enter_no_module(root(step));
  return known->second;
}

const NvtxMessage* Attribution::message(uint32_t string) {
  auto [known, added] = messages_.try_emplace(string);
  if (added) {
    const StringInfo* info = definitions_.string(string);
    std::string_view domain = info && info->domain != 0 ? definitions_.text(info->domain) : std::string_view();
    known->second = std::make_unique<NvtxMessage>(parse_nvtx_message(definitions_.text(string), domain));
  }
  return known->second.get();
}

// ---- a thread's stream

void Attribution::read_thread(const Chunk& chunk) {
  Thread& thread = threads_[chunk.header.thread];
  if (uint32_t missing = chunk.header.sequence - thread.next_sequence; missing != 0) {
    account_.lost_pieces += missing <= INT32_MAX ? missing : 1;  // else one that should have come before
    if (!thread.lost) thread.before_loss = std::move(thread.frames);
    thread.lost = true;
    thread.frames.clear();
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
    case RecordKind::kStepChange: thread.step = record.header().id; return;
    case RecordKind::kLaunch: return launch(thread, record);
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
  auto bytes = record.behind<ThreadStateRecord>();
  std::vector<Frame> known = std::move(thread.lost ? thread.before_loss : thread.frames);
  thread.frames.clear();
  thread.step = state->step;
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
  thread.frames.clear();
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
  if (thread.frames.size() >= kMaxFrames) {
    ++account_.damaged_records;
    return;
  }
  Frame frame{};
  frame.call = ++thread.calls;
  frame.begin = time;
  frame.order = order_;
  const ContextInfo* info = definitions_.context(context);
  if (!info || info->kind != ContextKind::kPhase) {
    frame.message = context == kOtherContext ? &kOtherRange : message(info ? info->name : 0);
    frame.name = tree_.name_id(frame.message->name);
  }
  thread.frames.push_back(std::move(frame));
  if (shown(thread.step)) thread.frames.back().home = place(thread, thread.step);
}

void Attribution::pop(Thread& thread, uint32_t index, uint64_t time) {
  if (index >= thread.frames.size()) {
    ++account_.damaged_records;
    return;
  }
  const Frame& frame = thread.frames[index];
  bool is_layer = frame.message && frame.message->kind == NvtxMessage::Kind::kLayer;
  if (is_layer && frame.begin != 0 && time > frame.begin && frame.home != Position{}) {
    tree_.add_cpu_time(frame.home, static_cast<double>(time - frame.begin) / 1000);
  }
  thread.frames.erase(thread.frames.begin() + index);
  // Overlapping ranges: what was inside of the closed one goes on in another place.
  for (size_t i = index; i < thread.frames.size(); ++i) thread.frames[i].in_steps = {}, thread.frames[i].idle = {};
}

// Where the call is in the step, if it was seen there; else the place of the step seen longest ago.
Attribution::Placed& Attribution::placed_in(Frame& frame, uint32_t step) {
  if (step < kFirstStep) return frame.idle;
  auto known = std::find_if(frame.in_steps.begin(), frame.in_steps.end(), [&](const Placed& p) { return p.step == step; });
  auto end = known != frame.in_steps.end() ? known + 1 : known;
  std::rotate(frame.in_steps.begin(), end - 1, end);
  return frame.in_steps.front();
}

// The innermost open layer as it stands in the step. Layers not yet seen there are entered.
Position Attribution::place(Thread& thread, uint32_t step) {
  Position at = root(step);
  for (Frame& frame : thread.frames) {
    if (!frame.message || frame.message->kind != NvtxMessage::Kind::kLayer) continue;
    Placed& placed = placed_in(frame, step);
    if (placed.step != step) placed = {step, tree_.enter(at, frame.name, {frame.order, 0})};
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
    const NvtxMessage* open = thread.frames[i].message;
    if (!open || open->kind == NvtxMessage::Kind::kIgnored) continue;
    if (open->kind == NvtxMessage::Kind::kLayer) break;
    if (!add_to_trace(trace, open->name)) break;
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
  auto entry = std::make_shared<Launch>();
  entry->kind = static_cast<LaunchKind>(flags & kLaunchKindMask);
  entry->shown = shown(thread.step);
  entry->step = thread.step;
  entry->exec = launched->graph_exec;
  if (entry->kind == LaunchKind::kGraph) entry->graph_sequence = full_sequence(launched->graph_sequence);
  entry->order = order_;
  if (entry->shown) {
    entry->position = place(thread, thread.step);
    entry->trace = trace_of(thread);
  }
  for (Frame& frame : thread.frames) {
    if (!frame.message || frame.message->kind != NvtxMessage::Kind::kLayer) continue;
    entry->in_layer = true;
    if (entry->kind == LaunchKind::kGraph) entry->layers.push_back({frame.name, placed_in(frame, thread.step).position});
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
    if (!frame.message || frame.message->kind == NvtxMessage::Kind::kIgnored) continue;
    if (!frame.captured || frame.captured->parent != chain) {
      auto call = std::make_shared<CapturedCall>();
      call->parent = chain;
      call->name = frame.name;
      call->is_op = frame.message->kind == NvtxMessage::Kind::kOp;
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
