#include "profile_builder.h"

#include <zstd.h>

#include <cmath>

namespace lamina {

using namespace format;

// ---- bytes

std::string file_header(FileHeader header) { return {reinterpret_cast<const char*>(&header), sizeof(header)}; }

std::string file_header() {
  FileHeader header{};
  memcpy(header.magic, kMagic, sizeof(kMagic));
  header.version = kVersion;
  header.header_size = sizeof(header);
  header.start_time = 1;
  header.pid = 4711;
  return file_header(header);
}

std::string chunk_bytes(ChunkHeader header, std::span<const char> records) {
  std::string stored(ZSTD_compressBound(records.size()), '\0');
  ZSTD_CCtx* compressor = ZSTD_createCCtx();
  ZSTD_CCtx_setParameter(compressor, ZSTD_c_checksumFlag, 1);
  stored.resize(ZSTD_compress2(compressor, stored.data(), stored.size(), records.data(), records.size()));
  ZSTD_freeCCtx(compressor);
  header.magic = kChunkMagic;
  header.stored_size = static_cast<uint32_t>(stored.size());
  header.raw_size = static_cast<uint32_t>(records.size());
  header.check = header_check(header);
  return std::string(reinterpret_cast<const char*>(&header), sizeof(header)) + stored;
}

// ---- a thread

ThreadBuilder& ThreadBuilder::push(std::string_view name, std::string_view domain) {
  uint32_t parent = open_.empty() ? kRootContext : open_.back().context;
  return push_context(profile_.context(parent, profile_.string(name, domain)));
}

ThreadBuilder& ThreadBuilder::push_context(uint32_t context) {
  open_.push_back({context, ++calls_, step_});
  return record(RecordKind::kPush, 0, context, PushRecord{{}, profile_.tick()});
}

ThreadBuilder& ThreadBuilder::pop() { return pop_at(open_.size() - 1); }

ThreadBuilder& ThreadBuilder::pop_at(size_t index) {
  open_.erase(open_.begin() + static_cast<long>(index));
  return record(RecordKind::kPop, 0, static_cast<uint32_t>(index), PopRecord{{}, profile_.tick()});
}

ThreadBuilder& ThreadBuilder::phase(std::string_view name, bool collected) {
  return step_range("phase:" + std::string(name), name, collected);
}

ThreadBuilder& ThreadBuilder::step_range(std::string_view text, std::string_view phase, bool collected) {
  uint32_t parent = open_.empty() ? kRootContext : open_.back().context;
  uint32_t message = profile_.string(text);
  push_context(profile_.context(parent, message, ContextKind::kPhase));
  return set_step(profile_.add_step(phase, collected, message));
}

ThreadBuilder& ThreadBuilder::end_phase() {
  uint32_t before = open_.back().step_before;
  profile_.end_step(step_);
  pop();
  return set_step(before == kStartupStep ? kNoStep : before);
}

ThreadBuilder& ThreadBuilder::set_step(uint32_t step) {
  step_ = step;
  return record(RecordKind::kStepChange, 0, step, StepChangeRecord{});
}

ThreadBuilder& ThreadBuilder::mark(std::string_view text) {
  return record(RecordKind::kMark, 0, profile_.string(text), MarkRecord{{}, profile_.tick()});
}

ThreadBuilder& ThreadBuilder::state() {
  std::string calls;
  for (const Open& open : open_) {
    OpenCall call{open.context, open.call};
    calls.append(reinterpret_cast<const char*>(&call), sizeof(call));
  }
  auto depth = static_cast<uint32_t>(open_.size());
  append_record(records_, RecordKind::kThreadState, 0, depth, ThreadStateRecord{{}, step_, calls_}, calls);
  return *this;
}

ThreadBuilder& ThreadBuilder::launch(uint32_t correlation, LaunchKind kind, uint8_t flags) {
  uint32_t context = open_.empty() ? kRootContext : open_.back().context;
  LaunchRecord launched{{}, context, 0, 0, 0};
  return record(RecordKind::kLaunch, static_cast<uint8_t>(kind) | flags, correlation, launched);
}

ThreadBuilder& ThreadBuilder::launch_graph(uint32_t correlation, uint32_t exec) {
  uint32_t context = open_.empty() ? kRootContext : open_.back().context;
  LaunchRecord launched{{}, context, exec, profile_.graph_records, 0};
  return record(RecordKind::kLaunch, static_cast<uint8_t>(LaunchKind::kGraph), correlation, launched);
}

template <typename Record>
ThreadBuilder& ThreadBuilder::graph_record(RecordKind kind, uint32_t id, Record event, uint32_t other, uint8_t flags) {
  GraphHeader header{{}, profile_.graph_records++, other};
  memcpy(&event, &header, sizeof(header));
  return record(kind, flags, id, event);
}

ThreadBuilder& ThreadBuilder::graph(uint32_t id) {
  return graph_record(RecordKind::kGraphCreated, id, GraphCreatedRecord{});
}

ThreadBuilder& ThreadBuilder::node(uint32_t graph, uint32_t number, std::string_view kernel) {
  profile_.nodes_[graph].push_back(number);
  uint32_t context = open_.empty() ? kRootContext : open_.back().context;
  uint32_t name = kernel.empty() ? 0 : profile_.string(kernel);
  return graph_record(RecordKind::kGraphNode, context, GraphNodeRecord{{}, node_id(graph, number)}, name);
}

ThreadBuilder& ThreadBuilder::clone_node(uint64_t node, uint64_t original) {
  return graph_record(RecordKind::kGraphNodeCloned, 0, GraphNodeClonedRecord{{}, node, original});
}

void ThreadBuilder::copy_nodes(uint32_t to, uint32_t from) {
  for (uint32_t number : profile_.nodes_[from]) {
    clone_node(node_id(to, number), node_id(from, number));
    profile_.nodes_[to].push_back(number);
  }
}

ThreadBuilder& ThreadBuilder::clone_graph(uint32_t id, uint32_t original) {
  graph(id);
  copy_nodes(id, original);
  return graph_record(RecordKind::kGraphCreated, id, GraphCreatedRecord{}, original, kGraphCloned);
}

ThreadBuilder& ThreadBuilder::exec(uint32_t id, uint32_t graph) {
  return graph_record(RecordKind::kGraphExec, id, GraphExecRecord{}, graph);
}

ThreadBuilder& ThreadBuilder::instantiate(uint32_t id, uint32_t from) {
  graph(id);
  copy_nodes(id, from);
  return exec(id, from);
}

ThreadBuilder& ThreadBuilder::destroy_graph(uint32_t id) {
  return graph_record(RecordKind::kGraphDestroyed, id, GraphDestroyedRecord{});
}

ThreadBuilder& ThreadBuilder::destroy_exec(uint32_t id) {
  return graph_record(RecordKind::kGraphExecDestroyed, id, GraphDestroyedRecord{});
}

ThreadBuilder& ThreadBuilder::update_node(uint32_t exec, uint32_t number, uint64_t source) {
  return graph_record(RecordKind::kGraphNodeUpdated, exec, GraphNodeUpdatedRecord{{}, node_id(exec, number), source});
}

ThreadBuilder& ThreadBuilder::update(uint32_t exec, uint32_t graph) {
  return graph_record(RecordKind::kGraphExecUpdated, exec, GraphExecUpdatedRecord{}, graph);
}

ThreadBuilder& ThreadBuilder::set_params(uint64_t node, uint32_t exec) {
  uint32_t context = open_.empty() ? kRootContext : open_.back().context;
  return graph_record(RecordKind::kGraphNodeSetParams, context, GraphNodeSetParamsRecord{{}, node}, exec);
}

void ThreadBuilder::flush() {
  if (records_.empty()) return;
  ChunkHeader header{};
  header.kind = ChunkKind::kThread;
  header.thread = number_;
  header.sequence = sequence_++;
  profile_.add_chunk(header, records_);
}

void ThreadBuilder::lose() {
  records_.clear();
  ++sequence_;
}

// ---- the profile

uint32_t ProfileBuilder::string(std::string_view text, std::string_view domain) {
  uint32_t domain_id = domain.empty() ? 0 : string(domain);
  auto [known, added] = strings_.try_emplace({std::string(text), std::string(domain)}, 0);
  if (!added) return known->second;
  uint32_t id = known->second = ++string_count_;
  define(RecordKind::kString, 0, id, StringRecord{{}, static_cast<uint32_t>(text.size()), domain_id}, text);
  return id;
}

uint32_t ProfileBuilder::context(uint32_t parent, uint32_t name, ContextKind kind) {
  auto [known, added] = context_ids_.try_emplace({parent, name}, contexts_);
  if (!added) return known->second;
  define(RecordKind::kContext, static_cast<uint8_t>(kind), contexts_, ContextRecord{{}, parent, name});
  return contexts_++;
}

uint32_t ProfileBuilder::add_step(std::string_view phase, bool collected, uint32_t message, bool found) {
  int flags = (collected ? 0 : kStepNotCollected) | (found ? kStepFound : 0);
  define(RecordKind::kStep, static_cast<uint8_t>(flags), steps_, StepRecord{{}, string(phase), message, tick()});
  return steps_++;
}

void ProfileBuilder::end_step(uint32_t step) { define(RecordKind::kStepEnd, 0, step, StepEndRecord{{}, tick()}); }

void ProfileBuilder::property(std::string_view key, std::string_view value) {
  std::string text = std::string(key) + '\0' + std::string(value);
  PropertyRecord property{{}, static_cast<uint32_t>(text.size()), static_cast<uint32_t>(key.size())};
  define(RecordKind::kProperty, 0, 0, property, text);
}

ThreadBuilder& ProfileBuilder::thread(uint32_t number) {
  return threads_.try_emplace(number, *this, number).first->second;
}

template <typename Site>
void ProfileBuilder::activity(RecordKind kind, Site site, uint32_t correlation, double us, Ran ran) {
  site.device = ran.device;
  site.stream = ran.stream;
  site.graph_node = ran.node;
  std::vector<char> bytes;
  append_record(bytes, kind, 0, 0, site);
  auto [known, added] = sites_.try_emplace(bytes, static_cast<uint32_t>(sites_.size() + 1));
  uint32_t site_id = known->second;
  if (added) append_record(activity_, kind, 0, site_id, site);
  uint64_t start = ran.start != 0 ? ran.start : gpu_time_;
  auto duration = static_cast<uint64_t>(std::llround(us * 1000));
  if (base_time_ == 0) base_time_ = last_start_ = start;
  ActivityRecord record{{}, correlation, 0, 0, 0};
  if (!ran.timed) {
    append_record(activity_, RecordKind::kActivity, kActivityNoTime, site_id, record);
  } else {
    WideTime wide{start, duration};
    std::string_view behind(reinterpret_cast<const char*>(&wide), sizeof(wide));
    auto delta = static_cast<int64_t>(start - last_start_);
    bool fits = delta == static_cast<int32_t>(delta) && duration == static_cast<uint32_t>(duration);
    if (fits) record.duration = static_cast<uint32_t>(duration), record.start_delta = static_cast<int32_t>(delta);
    append_record(activity_, RecordKind::kActivity, fits ? 0 : kActivityWideTime, site_id, record, fits ? "" : behind);
    last_start_ = start;
    gpu_time_ = start + duration;
  }
  ++activities_;
}

void ProfileBuilder::kernel(uint32_t correlation, std::string_view name, double us, Ran ran) {
  KernelSiteRecord site{};
  site.name = string(name);
  activity(RecordKind::kKernelSite, site, correlation, us, ran);
}

void ProfileBuilder::memcpy_htod(uint32_t correlation, double us, uint64_t node) {
  MemcpySiteRecord site{};
  site.copy_kind = 1;
  site.source_kind = 2;
  site.destination_kind = 3;
  activity(RecordKind::kMemcpySite, site, correlation, us, {.node = node});
}

void ProfileBuilder::memset_device(uint32_t correlation, double us, uint64_t node) {
  MemsetSiteRecord site{};
  site.memory_kind = 3;
  activity(RecordKind::kMemsetSite, site, correlation, us, {.node = node});
}

void ProfileBuilder::add_chunk(ChunkHeader header, std::vector<char>& records) {
  offsets_.push_back(file_.size());
  file_ += chunk_bytes(header, records);
  records.clear();
}

void ProfileBuilder::flush() {
  ChunkHeader header{};
  header.kind = ChunkKind::kDefinitions;
  if (!definitions_.empty()) add_chunk(header, definitions_);
  for (auto& [number, thread] : threads_) thread.flush();
  header.kind = ChunkKind::kActivity;
  header.base_time = base_time_;
  if (!activity_.empty()) add_chunk(header, activity_);
  base_time_ = 0;
  sites_.clear();
}

void ProfileBuilder::add_bytes(std::string_view bytes) { file_ += bytes; }

std::string ProfileBuilder::bytes(bool with_trailer) {
  flush();
  if (!with_trailer) return file_;
  ChunkHeader header{};
  header.kind = ChunkKind::kTrailer;
  std::vector<char> records;
  append_record(records, RecordKind::kTrailer, 0, 0, TrailerRecord{{}, activities_, offsets_.size(), 1});
  return file_ + chunk_bytes(header, records);
}

}  // namespace lamina
