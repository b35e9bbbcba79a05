// Graphs under construction, and what the process's threads say of them, put in order.
#include "report/attribution/attribution.h"

namespace lamina {

using namespace format;

namespace {

constexpr size_t kMaxWaitingGraphEvents = 200'000;

}  // namespace

// The open calls, outermost first, as the chain that nodes created now keep.
CapturedCallPtr Attribution::capture(Thread& thread) {
  CapturedCallPtr chain;
  for (Frame& frame : thread.frames) {
    if (!frame.is(NvtxMessage::Kind::kOp) && !frame.is_layer()) continue;
    if (frame.is(NvtxMessage::Kind::kLeftOut)) chain = nullptr;
    if (!frame.captured || frame.captured->parent != chain) frame.captured = captured_call(frame, chain);
    chain = frame.captured;
  }
  return chain;
}

CapturedCallPtr Attribution::captured_call(const Frame& frame, CapturedCallPtr outer) {
  auto call = std::make_shared<CapturedCall>();
  bool is_op = frame.is(NvtxMessage::Kind::kOp);
  call->number = ++captured_calls_;
  call->name = frame.meaning->name;
  call->trace = frame.meaning->trace;
  call->is_op = is_op;
  call->is_native = frame.is_native;
  call->in_range = (outer && outer->in_range) || (!is_op && !frame.is_native);
  call->left_out = frame.is(NvtxMessage::Kind::kLeftOut);
  call->depth = outer ? outer->depth + (outer->is_op ? 0 : 1) : 0;
  call->order = frame.order;
  call->layer = is_op ? (outer ? outer->layer : nullptr) : call.get();
  call->in_op = is_op && (!frame.is_native || (outer && outer->in_op));
  call->parent = std::move(outer);
  std::string ops;
  for (const CapturedCall* op = call.get(); op && op->is_op && add_to_trace(ops, tree_.name(op->trace)); op = op->parent.get()) {
  }
  call->ops_trace = tree_.name_id(ops);
  return call;
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
