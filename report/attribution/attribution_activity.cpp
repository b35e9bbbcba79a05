// The second half of Attribution: activity, and how it finds its launch.
#include <algorithm>

#include "report/attribution/activity_names.h"
#include "report/attribution/attribution.h"

namespace lamina {

using namespace format;

namespace {

// What waits for its other half is bounded by age. A launch's kernels come within the buffers' depth of it.
constexpr size_t kMaxLaunches = 4u << 20;
constexpr size_t kMaxUnlaunched = 1u << 20;
constexpr size_t kMaxWaitingReplays = 1u << 18;
constexpr size_t kMaxReplayedCalls = 4u << 20;
constexpr size_t kMaxConditionals = 20'000;
constexpr size_t kMaxAnchors = 4096;  // of an executable graph

constexpr std::string_view kUnknownLibrary = "(not known)";
constexpr std::string_view kCopies = "(memcpy and memset)";
constexpr std::string_view kApartNames[] = {"", "", "(driver)", "(unknown node)", "(stale node)", "(ambiguous node)"};

}  // namespace

// ---- records

void Attribution::read_activity(const Chunk& chunk) {
  sites_.clear();
  uint64_t start = chunk.header.base_time;
  bool whole = chunk.for_each([&](const RecordView& record) {
    if (record.header().kind != RecordKind::kActivity) return read_site(record);
    auto ran = record.as<ActivityRecord>();
    auto site = sites_.find(record.header().id);
    if (!ran || site == sites_.end()) return void(++account_.damaged_records);
    Activity activity = site->second;
    activity.correlation = ran->correlation;
    activity.timed = !(record.header().flags & kActivityNoTime);
    start += static_cast<uint64_t>(static_cast<int64_t>(ran->start_delta));
    activity.duration = ran->duration;
    auto wide_bytes = record.behind<ActivityRecord>(sizeof(WideTime));
    if (record.header().flags & kActivityWideTime && wide_bytes.size() == sizeof(WideTime)) {
      WideTime wide;
      memcpy(&wide, wide_bytes.data(), sizeof(wide));
      start = wide.start;
      activity.duration = wide.duration;
    }
    activity.start = activity.timed ? start : 0;
    join(activity);
  });
  if (!whole) ++account_.damaged_records;
  if (conditionals_.size() > kMaxConditionals) resolve_conditionals(false);
  forget_old();
}

void Attribution::read_site(const RecordView& record) {
  Activity activity;
  if (auto kernel = record.as<KernelSiteRecord>(); kernel && record.header().kind == RecordKind::kKernelSite) {
    auto [name, added] = kernel_names_.try_emplace(kernel->name);
    if (added) name->second = tree_.name_id(kernel_name(definitions_.text(kernel->name)));
    activity.kind = ActivityKind::kKernel;
    activity.name = name->second;
    activity.mangled = kernel->name;
    activity.device = kernel->device;
    activity.stream = kernel->stream;
    activity.graph_node = kernel->graph_node;
    activity.size = {.grid = {kernel->grid[0], kernel->grid[1], kernel->grid[2]},
                     .block = {kernel->block[0], kernel->block[1], kernel->block[2]},
                     .registers = kernel->registers_per_thread,
                     .static_shared_memory = kernel->static_shared_memory,
                     .dynamic_shared_memory = kernel->dynamic_shared_memory};
  } else if (auto copy = record.as<MemcpySiteRecord>(); copy && record.header().kind == RecordKind::kMemcpySite) {
    activity.kind = ActivityKind::kMemcpy;
    activity.name = tree_.name_id(memcpy_name(copy->copy_kind, copy->source_kind, copy->destination_kind));
    activity.device = copy->device;
    activity.stream = copy->stream;
    activity.graph_node = copy->graph_node;
    activity.size.bytes = copy->bytes;
  } else if (auto memset = record.as<MemsetSiteRecord>(); memset && record.header().kind == RecordKind::kMemsetSite) {
    activity.kind = ActivityKind::kMemset;
    activity.name = tree_.name_id(memset_name(memset->memory_kind));
    activity.device = memset->device;
    activity.stream = memset->stream;
    activity.graph_node = memset->graph_node;
    activity.size.bytes = memset->bytes;
  } else {
    return;
  }
  sites_[record.header().id] = activity;
}

// ---- the join

void Attribution::join(const Activity& activity) {
  if (activity.graph_node != 0 && activity.correlation == 0) return conditionals_.push_back(activity);
  auto found = launches_.find(activity.correlation);
  if (found == launches_.end()) {
    auto& waiting = unlaunched_[activity.correlation];
    if (waiting.empty()) unlaunched_ages_.push_back(activity.correlation);
    ++unlaunched_count_;
    return waiting.push_back(activity);
  }
  LaunchPtr launch = found->second;
  if (activity.graph_node != 0) {
    remember_anchor(activity, launch);
    return attribute_replay(activity, launch);
  }
  if (launch->kind == LaunchKind::kKernel) {
    auto missing = account_.missing_in_step.find(launch->step);
    if (missing != account_.missing_in_step.end() && --missing->second == 0) account_.missing_in_step.erase(missing);
    launches_.erase(found);
  }
  attribute(activity, *launch);
}

void Attribution::attribute(const Activity& activity, Launch& launch) {
  Placement placement = launch.in_layer ? Placement::kLayer : Placement::kNoRange;
  if (!launch.shown) return void(++account_.not_shown);
  emit(activity, launch.position, launch.own_trace(), {launch.order, 0}, placement, launch.step);
}

// The layer of a replayed kernel is that of its node, below the launch's own layers.
void Attribution::attribute_replay(const Activity& activity, const LaunchPtr& launch_entry) {
  Launch& launch = *launch_entry;
  if (!launch.shown) return void(++account_.not_shown);
  bool graph_is_read = launch.graph_sequence <= next_graph_event_ || finishing_;
  if (!graph_is_read) {
    waiting_for_graph_.emplace_back(activity, launch_entry);
    if (waiting_for_graph_.size() > kMaxWaitingReplays) apply_graph_events(true);
    return;
  }
  const GraphNode* node = graphs_.find(activity.graph_node, launch.graph_sequence);
  if (!node) return set_apart(activity, launch, Placement::kUnknownNode);
  if (node->stale) return set_apart(activity, launch, Placement::kStaleNode);
  bool other_kernel = activity.kind == ActivityKind::kKernel && node->kernel != 0 && node->kernel != activity.mangled;
  if (other_kernel) return set_apart(activity, launch, Placement::kAmbiguousNode);
  std::string trace;
  CapturedCallPtr layer = node->call;
  bool goes_on = true, in_op = false;
  for (; layer && layer->is_op; layer = layer->parent) {
    goes_on = goes_on && add_to_trace(trace, tree_.name(layer->trace));
    in_op = in_op || !layer->is_native;
  }
  bool in_range = launch.in_layer || (layer && layer->in_range);
  Placement placement = in_range ? Placement::kLayer : Placement::kNoRange;
  uint32_t trace_id = tree_.name_id(trace);
  if (trace_id == 0 && layer) trace_id = layer->trace != 0 || launch.native_trace ? layer->trace : launch.trace;
  if (trace_id == 0 && !layer) trace_id = launch.own_trace();
  if (layer && launch.replayed.empty()) replays_.push_back(launch_entry);
  // In an op outside of every layer it has none, as it has none when it is launched by itself.
  Position place = layer || !in_op ? replay_place(launch, layer) : launch.position;
  emit(activity, place, trace_id, {launch.order, node->order}, placement, launch.step);
}

// The layers of a graph launch with the functions of its call stack, which stand in the tree only if something needs them.
// Those that the launch before stood in too are the same calls, still.
const std::vector<Attribution::OpenLayer>& Attribution::all_layers(Launch& launch) {
  if (!launch.native_places.empty()) return launch.native_places;
  launch.native_places = launch.layers;
  Position at = launch.position;
  for (LayerName name : launch.native_layers) {
    size_t depth = launch.native_places.size();
    bool same = depth < last_native_places_.size() && last_native_places_[depth].name == name &&
                (depth == 0 || last_native_places_[depth - 1].position == at) && last_native_step_ == launch.step;
    if (!same) last_native_places_.clear();
    at = same ? last_native_places_[depth].position : tree_.enter(at, name, {launch.order, 0});
    launch.native_places.push_back({name, at});
  }
  last_native_places_ = launch.native_places;
  last_native_step_ = launch.step;
  return launch.native_places;
}

// Layers that launch and node have in common from the outside are one; from the first that differs the node's stand
// inside of the launch's. Functions of the launch's call stack are no layers of what has its layers by ranges.
Position Attribution::replay_place(Launch& launch, const CapturedCallPtr& call) {
  if (call && call->is_op) return replay_place(launch, call->parent);
  bool by_ranges = call && call->in_range;
  const std::vector<OpenLayer>& layers = by_ranges || launch.native_layers.empty() ? launch.layers : all_layers(launch);
  Position innermost = layers.size() > launch.layers.size() ? layers.back().position : launch.position;
  if (!call) return innermost;
  if (auto known = launch.replayed.find(call.get()); known != launch.replayed.end()) return known->second;
  bool parent_shared = true;
  Position parent = call->left_out ? root(launch.step) : innermost;
  CapturedCallPtr outer = call->parent;
  while (outer && outer->is_op) outer = outer->parent;
  if (outer) {
    parent = replay_place(launch, outer);
    parent_shared = outer->depth < layers.size() && layers[outer->depth].position == parent;
  }
  bool shared = parent_shared && call->depth < layers.size() && layers[call->depth].name == call->name;
  if (outer && parent_shared && !shared) parent = innermost;
  Position position = shared ? layers[call->depth].position : tree_.enter(parent, call->name, {launch.order, call->order});
  launch.replayed.emplace(call.get(), position);
  ++replayed_calls_;
  return position;
}

void Attribution::set_apart(const Activity& activity, Launch& launch, Placement placement) {
  Position& row = launch.apart[static_cast<size_t>(placement)];
  Order order{launch.order, 0};
  if (row == Position{}) row = tree_.enter(launch.position, {tree_.name_id(kApartNames[static_cast<size_t>(placement)])}, order);
  emit(activity, row, launch.own_trace(), order, placement, launch.step);
}

void Attribution::emit(const Activity& activity, Position parent, uint32_t trace, Order order, Placement placement, uint32_t step) {
  double us = static_cast<double>(activity.duration) / 1000;
  ++account_.activities[static_cast<size_t>(activity.kind)];
  ++account_.by_placement[static_cast<size_t>(placement)];
  if (!activity.timed) ++account_.without_time;
  account_.total_us += us;
  KernelUse& use = kernel_uses_[static_cast<uint64_t>(root(step).summary) << 32 | activity.mangled];
  use.us += us;
  ++use.count;
  tree_.add_activity(parent == root(step) ? no_module(step) : parent, activity.name, trace, us, order);
  if (observer_) observer_(activity, parent, placement, step, trace);
}

// Nothing says when it was launched, so it belongs to no phase.
void Attribution::emit_unlaunched(const Activity& activity) {
  uint32_t step = phases_ != PhaseSource::kNone ? kNoStep : kStartupStep;
  Order order{++order_, 0};
  uint32_t name = tree_.name_id(kApartNames[static_cast<size_t>(Placement::kDriver)]);
  emit(activity, tree_.enter(root(step), {name}, order), 0, order, Placement::kDriver, step);
}

// ---- conditional bodies

void Attribution::remember_anchor(const Activity& activity, const LaunchPtr& launch) {
  if (!activity.timed || activity.start >= launch->first_start) return;
  auto& anchors = anchors_[static_cast<uint32_t>(activity.graph_node >> 32)];
  if (launch->first_start != UINT64_MAX) anchors.erase(launch->first_start);
  launch->first_start = activity.start;
  anchors[activity.start] = launch;
  if (conditionals_.empty() && anchors.size() > kMaxAnchors) anchors.erase(anchors.begin());
}

// Launches of one executable graph do not overlap: the last that began before the kernel is the one.
Attribution::LaunchPtr Attribution::enclosing_launch(const Activity& activity) const {
  auto exec = static_cast<uint32_t>(activity.graph_node >> 32);
  auto anchors = anchors_.find(exec);
  if (anchors != anchors_.end() && !anchors->second.empty()) {
    auto after = anchors->second.upper_bound(activity.start);
    return after != anchors->second.begin() ? std::prev(after)->second : after->second;
  }
  auto last = last_launches_.find(exec);
  return last != last_launches_.end() ? last->second : nullptr;
}

// In the middle of a file only the older half, since anchors of the younger may still come.
void Attribution::resolve_conditionals(bool all) {
  std::stable_sort(conditionals_.begin(), conditionals_.end(), [](const Activity& a, const Activity& b) { return a.start < b.start; });
  size_t count = all ? conditionals_.size() : conditionals_.size() / 2;
  for (size_t i = 0; i < count; ++i) {
    LaunchPtr launch = enclosing_launch(conditionals_[i]);
    if (launch) {
      attribute_replay(conditionals_[i], launch);
    } else {
      emit_unlaunched(conditionals_[i]);
    }
  }
  conditionals_.erase(conditionals_.begin(), conditionals_.begin() + static_cast<long>(count));
  for (auto& [exec, anchors] : anchors_) {
    while (anchors.size() > kMaxAnchors) anchors.erase(anchors.begin());
  }
}

// ---- the end

void Attribution::forget_old() {
  while (!launch_ages_.empty()) {
    auto [correlation, order] = launch_ages_.front();
    auto launch = launches_.find(correlation);
    bool answered = launch == launches_.end() || launch->second->order != order;
    if (!answered && launches_.size() <= kMaxLaunches) break;
    launch_ages_.pop_front();
    if (answered) continue;
    if (launch->second->kind == LaunchKind::kKernel) ++account_.without_activity;
    launches_.erase(launch);
  }
  while (replayed_calls_ > kMaxReplayedCalls) {
    replayed_calls_ -= replays_.front()->replayed.size();
    replays_.front()->replayed = {};
    replays_.pop_front();
  }
  while (unlaunched_ages_.size() > kMaxUnlaunched || unlaunched_count_ > kMaxUnlaunched) {
    auto waiting = unlaunched_.find(unlaunched_ages_.front());
    unlaunched_ages_.pop_front();
    if (waiting == unlaunched_.end()) continue;
    for (const Activity& activity : waiting->second) emit_unlaunched(activity);
    unlaunched_count_ -= waiting->second.size();
    unlaunched_.erase(waiting);
  }
}

void Attribution::finish() {
  finishing_ = true;
  for (auto& [id, thread] : threads_) settle(thread);
  apply_graph_events(true);
  resolve_conditionals(true);
  for (const auto& [correlation, activities] : unlaunched_) {
    for (const Activity& activity : activities) emit_unlaunched(activity);
  }
  unlaunched_.clear();
  for (const auto& [correlation, launch] : launches_) {
    if (launch->kind == LaunchKind::kKernel) ++account_.without_activity;
  }
  launches_.clear();
  add_libraries();
}

void Attribution::add_libraries() {
  for (const auto& [key, use] : kernel_uses_) {
    auto kernel = static_cast<uint32_t>(key);
    auto known = kernel_libraries_.find(kernel);
    uint32_t library = known != kernel_libraries_.end() ? known->second : tree_.name_id(kernel != 0 ? kUnknownLibrary : kCopies);
    tree_.add_library(static_cast<uint32_t>(key >> 32), library, use.us, use.count);
  }
}

}  // namespace lamina
