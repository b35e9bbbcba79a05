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
constexpr size_t kMaxAnswered = 400'000;
constexpr size_t kMaxWaitingReplays = 1u << 18;
constexpr size_t kMaxReplayedCalls = 1u << 20;
constexpr size_t kMaxSites = kMaxChunkBytes / sizeof(MemsetSiteRecord);  // of a chunk
constexpr size_t kMaxConditionals = 20'000;
constexpr size_t kMaxAnchors = 4096;  // of an executable graph

constexpr std::string_view kCommunication = "communication";  // of KernelGroups
constexpr std::string_view kUnknownLibrary = "(not known)";
constexpr std::string_view kCopyNames = "(memcpy and memset)";
constexpr std::string_view kApartNames[] = {"", "", "(driver)", "(unknown node)", "(stale node)", "(ambiguous node)"};

}  // namespace

// ---- records

void Attribution::read_activity(const Chunk& chunk) {
  sites_.clear();
  uint64_t start = chunk.header.base_time;
  bool whole = chunk.for_each([&](const RecordView& record) {
    if (record.header().kind != RecordKind::kActivity) return read_site(record);
    auto ran = record.as<ActivityRecord>();
    uint32_t site = record.header().id;
    if (!ran || site >= sites_.size() || !sites_[site].defined) return void(++account_.damaged_records);
    Activity activity = sites_[site].activity;
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
    if (added) *name = tree_.name_id(kernel_name(definitions_.text(kernel->name)));
    activity.kind = ActivityKind::kKernel;
    activity.name = *name;
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
  uint32_t id = record.header().id;  // dense
  if (id > kMaxSites) return void(++account_.damaged_records);
  if (id >= sites_.size()) sites_.resize(id + 1);
  sites_[id] = {activity, true};
}

// ---- the join

void Attribution::join(const Activity& activity) {
  if (activity.graph_node != 0 && activity.correlation == 0) return conditionals_.push_back(activity);
  Launch* launch = launches_.find(activity.correlation);
  if (!launch) {
    auto& waiting = unlaunched_[activity.correlation];
    if (waiting.empty()) unlaunched_ages_.push_back(activity.correlation);
    ++unlaunched_count_;
    return waiting.push_back(activity);
  }
  if (activity.graph_node != 0) {
    const GraphLaunchPtr& replay = replay_of(activity, *launch);
    remember_anchor(activity, replay);
    return attribute_replay(activity, replay);
  }
  attribute(activity, *launch);
  if (launch->kind != LaunchKind::kKernel) return;
  if (uint64_t* missing = missing_in_step_.find(launch->step); missing && *missing > 0) --*missing;
  launches_.erase(activity.correlation);
}

// One that was recorded as something else than a graph's has no layers of its own.
const Attribution::GraphLaunchPtr& Attribution::replay_of(const Activity& activity, const Launch& launch) {
  if (last_replay_ && last_correlation_ == activity.correlation && last_replay_->launch.order == launch.order) return last_replay_;
  GraphLaunchPtr& replay = graph_launches_[activity.correlation];
  if (!replay || replay->launch.order != launch.order) replay = std::make_shared<GraphLaunch>(launch);
  last_correlation_ = activity.correlation;
  return last_replay_ = replay;
}

void Attribution::attribute(const Activity& activity, const Launch& launch) {
  Placement placement = launch.in_layer ? Placement::kLayer : Placement::kNoRange;
  if (!launch.shown) return void(++account_.not_shown);
  emit(activity, launch.position, launch.trace, {launch.order, 0}, placement, launch.step);
}

// The layer of a replayed kernel is that of its node, below the launch's own layers.
void Attribution::attribute_replay(const Activity& activity, const GraphLaunchPtr& replay) {
  const Launch& launch = replay->launch;
  if (!launch.shown) return void(++account_.not_shown);
  bool graph_is_read = replay->graph_sequence <= next_graph_event_ || finishing_;
  if (!graph_is_read) {
    waiting_for_graph_.emplace_back(activity, replay);
    if (waiting_for_graph_.size() > kMaxWaitingReplays) apply_graph_events(true);
    return;
  }
  const GraphNode* node = graphs_.find(activity.graph_node, replay->graph_sequence);
  if (!node) return set_apart(activity, *replay, Placement::kUnknownNode);
  if (node->stale) return set_apart(activity, *replay, Placement::kStaleNode);
  bool other_kernel = activity.kind == ActivityKind::kKernel && node->kernel != 0 && node->kernel != activity.mangled;
  if (other_kernel) return set_apart(activity, *replay, Placement::kAmbiguousNode);
  const CapturedCall* call = node->call.get();
  const CapturedCall* layer = call ? call->layer : nullptr;
  bool in_range = launch.in_layer || (layer && layer->in_range);
  Placement placement = in_range ? Placement::kLayer : Placement::kNoRange;
  uint32_t trace = call ? call->ops_trace : 0;
  if (trace == 0 && layer) trace = layer->trace != 0 || replay->native_trace ? layer->trace : replay->ops_trace;
  if (trace == 0 && !layer) trace = launch.trace;
  if (layer && replay->replayed.empty()) {
    replays_.push_back(replay);
    replay->replayed.reserve(last_replayed_);
  }
  // In an op outside of every layer it has none, as it has none when it is launched by itself.
  bool apart = !layer && call && call->in_op;
  Position place = apart ? launch.position : replay_place(*replay, layer);
  emit(activity, place, trace, {launch.order, node->order}, placement, launch.step);
}

// The layers of a graph launch with the functions of its call stack, which stand in the tree only if something needs them.
// Those that the launch before stood in too are the same calls, still.
const std::vector<Attribution::OpenLayer>& Attribution::all_layers(GraphLaunch& launch) {
  if (!launch.native_places.empty()) return launch.native_places;
  launch.native_places = launch.layers;
  Position at = launch.launch.position;
  uint32_t step = launch.launch.step;
  for (LayerName name : launch.native_layers) {
    size_t depth = launch.native_places.size();
    bool same = depth < last_native_places_.size() && last_native_places_[depth].name == name &&
                (depth == 0 || last_native_places_[depth - 1].position == at) && last_native_step_ == step;
    if (!same) last_native_places_.clear();
    at = same ? last_native_places_[depth].position : tree_.enter(at, name, {launch.launch.order, 0});
    launch.native_places.push_back({name, at});
  }
  last_native_places_ = launch.native_places;
  last_native_step_ = step;
  return launch.native_places;
}

// Layers that launch and node have in common from the outside are one; from the first that differs the node's stand
// inside of the launch's. Functions of the launch's call stack are no layers of what has its layers by ranges.
Position Attribution::replay_place(GraphLaunch& launch, const CapturedCall* call) {
  bool by_ranges = call && call->in_range;
  const std::vector<OpenLayer>& layers = by_ranges || launch.native_layers.empty() ? launch.layers : all_layers(launch);
  Position innermost = layers.size() > launch.layers.size() ? layers.back().position : launch.launch.position;
  if (!call) return innermost;
  if (Position* known = launch.replayed.find(call->number)) return *known;
  bool parent_shared = true;
  Position parent = call->left_out ? root(launch.launch.step) : innermost;
  const CapturedCall* outer = call->parent ? call->parent->layer : nullptr;
  if (outer) {
    parent = replay_place(launch, outer);
    parent_shared = outer->depth < layers.size() && layers[outer->depth].position == parent;
  }
  bool shared = parent_shared && call->depth < layers.size() && layers[call->depth].name == call->name;
  if (outer && parent_shared && !shared) parent = innermost;
  Position position = shared ? layers[call->depth].position : tree_.enter(parent, call->name, {launch.launch.order, call->order});
  launch.replayed[call->number] = position;
  last_replayed_ = launch.replayed.size();
  ++replayed_calls_;
  return position;
}

void Attribution::set_apart(const Activity& activity, GraphLaunch& replay, Placement placement) {
  const Launch& launch = replay.launch;
  Position& row = replay.apart[static_cast<size_t>(placement)];
  Order order{launch.order, 0};
  if (row == Position{}) row = tree_.enter(launch.position, {tree_.name_id(kApartNames[static_cast<size_t>(placement)])}, order);
  emit(activity, row, launch.trace, order, placement, launch.step);
}

void Attribution::emit(const Activity& activity, Position parent, uint32_t trace, Order order, Placement placement, uint32_t step) {
  double us = static_cast<double>(activity.duration) / 1000;
  ++account_.activities[static_cast<size_t>(activity.kind)];
  ++account_.by_placement[static_cast<size_t>(placement)];
  if (!activity.timed) ++account_.without_time;
  account_.total_us += us;
  Position step_root = root(step);
  KernelUse& use = kernel_uses_[static_cast<uint64_t>(step_root.summary) << 32 | activity.mangled];
  use.us += us;
  ++use.count;
  uint32_t row = tree_.add_activity(parent == step_root ? no_module(step) : parent, activity.name, trace, us, order);
  if (device_time_ && activity.timed) add_device_time(activity, row, order, step, step_root);
  if (observer_) observer_(activity, parent, placement, step, trace);
}

// A launch is told by its order.
void Attribution::add_device_time(const Activity& activity, uint32_t row, Order order, uint32_t step, Position step_root) {
  DeviceWork work{.start = activity.start, .end = activity.start + activity.duration, .device = activity.device, .row = row};
  if (activity.graph_node != 0) work.graph_launch = static_cast<uint32_t>(order.major);
  work.communication = is_communication(activity.name);
  bool between_phases = step == kNoStep || (!definitions_.step(step) && step != kStartupStep);
  if (between_phases) {
    device_time_->add_outside(work);
  } else {
    device_time_->add(work, step, step_root);
  }
}

bool Attribution::is_communication(uint32_t name) {
  if (name >= communication_.size()) communication_.resize(name + 1);
  char& known = communication_[name];
  if (known == 0) known = groups_.group_of(tree_.name(name)) == kCommunication ? 'y' : 'n';
  return known == 'y';
}

// Nothing says when it was launched, so it belongs to no phase.
void Attribution::emit_unlaunched(const Activity& activity) {
  uint32_t step = phases_ != PhaseSource::kNone ? kNoStep : kStartupStep;
  Order order{++order_, 0};
  uint32_t name = tree_.name_id(kApartNames[static_cast<size_t>(Placement::kDriver)]);
  emit(activity, tree_.enter(root(step), {name}, order), 0, order, Placement::kDriver, step);
}

// ---- conditional bodies

void Attribution::remember_anchor(const Activity& activity, const GraphLaunchPtr& launch) {
  if (!activity.timed || activity.start >= launch->first_start) return;
  auto& anchors = anchors_[static_cast<uint32_t>(activity.graph_node >> 32)];
  if (launch->first_start != UINT64_MAX) anchors.erase(launch->first_start);
  launch->first_start = activity.start;
  anchors[activity.start] = launch;
  if (conditionals_.empty() && anchors.size() > kMaxAnchors) anchors.erase(anchors.begin());
}

// Launches of one executable graph do not overlap: the last that began before the kernel is the one.
Attribution::GraphLaunchPtr Attribution::enclosing_launch(const Activity& activity) const {
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
    GraphLaunchPtr launch = enclosing_launch(conditionals_[i]);
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
    const Launch* launch = launches_.find(correlation);
    bool answered = !launch || launch->order != order;
    if (!answered && launches_.size() <= kMaxLaunches) break;
    launch_ages_.pop_front();
    if (answered) continue;
    if (launch->kind == LaunchKind::kKernel) ++account_.without_activity;
    if (!graph_launches_.empty()) graph_launches_.erase(correlation);
    launches_.erase(correlation);
  }
  if (launch_ages_.size() > 2 * launches_.size() + kMaxAnswered) forget_answered();
  while (replayed_calls_ > kMaxReplayedCalls) {
    replayed_calls_ -= replays_.front()->replayed.size();
    replays_.front()->replayed.clear();
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

// Those behind a launch that may have more activities.
void Attribution::forget_answered() {
  std::erase_if(launch_ages_, [&](const auto& age) {
    const Launch* launch = launches_.find(age.first);
    return !launch || launch->order != age.second;
  });
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
  launches_.for_each([&](uint32_t, const Launch& launch) {
    if (launch.kind == LaunchKind::kKernel) ++account_.without_activity;
  });
  launches_.clear();
  graph_launches_.clear();
  add_missing();
  add_libraries();
  if (!device_time_) return;
  device_time_->finish();
  account_.out_of_order = device_time_->late();
}

void Attribution::add_missing() {
  missing_in_step_.for_each([&](uint32_t step, uint64_t missing) {
    if (missing > 0) account_.missing_in_step[step] = missing;
  });
}

void Attribution::add_libraries() {
  std::map<uint64_t, KernelUse> uses;  // in an order of their own, so that sums are the same
  kernel_uses_.for_each([&](uint64_t key, const KernelUse& use) { uses[key] = use; });
  for (const auto& [key, use] : uses) {
    auto kernel = static_cast<uint32_t>(key);
    auto known = kernel_libraries_.find(kernel);
    uint32_t library = known != kernel_libraries_.end() ? known->second : tree_.name_id(kernel != 0 ? kUnknownLibrary : kCopyNames);
    tree_.add_library(static_cast<uint32_t>(key >> 32), library, use.us, use.count);
  }
}

}  // namespace lamina
