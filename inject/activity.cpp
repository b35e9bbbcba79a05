#include "inject/activity.h"

#include <cstdlib>
#include <cstring>
#include <limits>
#include <utility>

#include "inject/cupti_api.h"
#include "inject/log.h"

namespace lamina {

using namespace format;

namespace {

uint32_t hash_words(const char* bytes, size_t size) {
  uint64_t hash = 0x9e3779b97f4a7c15u;
  for (size_t i = 0; i + 8 <= size; i += 8) {
    uint64_t word;
    memcpy(&word, bytes + i, 8);
    hash = (hash ^ word) * 0xff51afd7ed558ccdu;
    hash ^= hash >> 32;
  }
  return static_cast<uint32_t>(hash);
}

}  // namespace

// ---- ActivityChunkBuilder

void ActivityChunkBuilder::append(const void* bytes, size_t size) {
  const char* begin = static_cast<const char*>(bytes);
  chunk_.records.insert(chunk_.records.end(), begin, begin + size);
}

// `bytes` is a site record whose id is still 0: what makes two sites equal is all of it.
uint32_t ActivityChunkBuilder::site_id(const char* bytes, size_t size) {
  if (sites_ * 2 >= slots_.size()) rehash();
  uint32_t hash = hash_words(bytes, size);
  size_t mask = slots_.size() - 1;
  for (size_t i = hash & mask;; i = (i + 1) & mask) {
    Slot& slot = slots_[i];
    if (slot.site == 0) {
      slot = {hash, ++sites_, static_cast<uint32_t>(chunk_.records.size())};
      append(bytes, size);
      memcpy(chunk_.records.data() + slot.offset + offsetof(RecordHeader, id), &sites_, sizeof(sites_));
      return sites_;
    }
    if (slot.hash != hash) continue;
    const char* known = chunk_.records.data() + slot.offset;
    constexpr size_t kIdEnd = sizeof(RecordHeader);
    if (memcmp(known, bytes, offsetof(RecordHeader, id)) == 0 && memcmp(known + kIdEnd, bytes + kIdEnd, size - kIdEnd) == 0) {
      return slot.site;
    }
  }
}

void ActivityChunkBuilder::rehash() {
  std::vector<Slot> old(slots_.size() * 2);
  old.swap(slots_);
  size_t mask = slots_.size() - 1;
  for (const Slot& slot : old) {
    if (slot.site == 0) continue;
    size_t i = slot.hash & mask;
    while (slots_[i].site != 0) i = (i + 1) & mask;
    slots_[i] = slot;
  }
}

template <typename Site>
void ActivityChunkBuilder::add(RecordKind kind, const Site& site, uint32_t correlation, uint64_t start, uint64_t end) {
  Site filled = site;
  filled.header = {kind, 0, sizeof(Site) / 8, 0};
  uint32_t id = site_id(reinterpret_cast<const char*>(&filled), sizeof(Site));
  ActivityRecord record{};
  record.header = {RecordKind::kActivity, 0, sizeof(ActivityRecord) / 8, id};
  record.correlation = correlation;
  add_times(record, start, end);
  ++chunk_.activities;
}

void ActivityChunkBuilder::add_times(ActivityRecord record, uint64_t start, uint64_t end) {
  if (start == 0 || end < start) {
    record.header.flags = kActivityNoTime;
    append(&record, sizeof(record));
    return;
  }
  if (chunk_.base_time == 0) chunk_.base_time = last_start_ = start;
  int64_t delta = static_cast<int64_t>(start - last_start_);
  uint64_t duration = end - start;
  last_start_ = start;
  bool fits = delta == static_cast<int32_t>(delta) && duration <= std::numeric_limits<uint32_t>::max();
  if (fits) {
    record.start_delta = static_cast<int32_t>(delta);
    record.duration = static_cast<uint32_t>(duration);
    append(&record, sizeof(record));
    return;
  }
  WideTime wide{start, duration};
  record.header.flags = kActivityWideTime;
  record.header.units = (sizeof(record) + sizeof(wide)) / 8;
  append(&record, sizeof(record));
  append(&wide, sizeof(wide));
}

ActivityChunk ActivityChunkBuilder::take() {
  std::fill(slots_.begin(), slots_.end(), Slot{});
  sites_ = 0;
  last_start_ = 0;
  return std::exchange(chunk_, {});
}

// ---- ActivityDecoder

ActivityDecoder::~ActivityDecoder() {
  for (uint8_t* buffer : free_buffers_) free(buffer);
}

uint8_t* ActivityDecoder::request() {
  {
    std::lock_guard lock(buffers_mutex_);
    if (!free_buffers_.empty()) {
      uint8_t* buffer = free_buffers_.back();
      free_buffers_.pop_back();
      return buffer;
    }
  }
  return static_cast<uint8_t*>(aligned_alloc(8, kBufferBytes));
}

void ActivityDecoder::completed(Cupti& cupti, CUcontext context, uint32_t stream, uint8_t* buffer, size_t valid_bytes) {
  size_t dropped = 0;
  cupti.dropped_records(context, stream, &dropped);
  definitions_.add_loss(LossKind::kCuptiDropped, dropped);
  {
    std::lock_guard lock(mutex_);
    CUpti_Activity* record = nullptr;
    while (cupti.next_record(buffer, valid_bytes, &record) == CUPTI_SUCCESS) {
      decode(record);
      if (builder_.full()) queue_chunk();
    }
  }
  std::lock_guard lock(buffers_mutex_);
  free_buffers_.push_back(buffer);
}

void ActivityDecoder::decode(const CUpti_Activity* record) {
  switch (record->kind) {
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
    case CUPTI_ACTIVITY_KIND_KERNEL: return decode_kernel(record);
    case CUPTI_ACTIVITY_KIND_MEMCPY: return decode_memcpy(record);
    case CUPTI_ACTIVITY_KIND_MEMCPY2: return decode_peer_memcpy(record);
    case CUPTI_ACTIVITY_KIND_MEMSET: return decode_memset(record);
    default: return;
  }
}

// The record types are those of CUPTI 12: what newer ones append lies behind the fields read here.
void ActivityDecoder::decode_kernel(const CUpti_Activity* record) {
  const auto& kernel = *reinterpret_cast<const CUpti_ActivityKernel9*>(record);
  KernelSiteRecord site{};
  site.name = name_id(kernel.name);
  site.device = kernel.deviceId;
  site.context = kernel.contextId;
  site.stream = kernel.streamId;
  site.graph_node = kernel.graphNodeId;
  site.grid[0] = kernel.gridX, site.grid[1] = kernel.gridY, site.grid[2] = kernel.gridZ;
  site.block[0] = kernel.blockX, site.block[1] = kernel.blockY, site.block[2] = kernel.blockZ;
  site.static_shared_memory = static_cast<uint32_t>(kernel.staticSharedMemory);
  site.dynamic_shared_memory = static_cast<uint32_t>(kernel.dynamicSharedMemory);
  site.registers_per_thread = kernel.registersPerThread;
  site.launch_type = kernel.launchType;
  builder_.add(RecordKind::kKernelSite, site, kernel.correlationId, kernel.start, kernel.end);
}

namespace {

// What copies inside of a device and between devices have in common.
template <typename Copy>
MemcpySiteRecord copy_site(const Copy& copy) {
  MemcpySiteRecord site{};
  site.device = site.source_device = site.destination_device = copy.deviceId;
  site.context = copy.contextId;
  site.stream = copy.streamId;
  site.copy_kind = copy.copyKind;
  site.source_kind = copy.srcKind;
  site.destination_kind = copy.dstKind;
  site.asynchronous = copy.flags & CUPTI_ACTIVITY_FLAG_MEMCPY_ASYNC;
  site.graph_node = copy.graphNodeId;
  site.bytes = copy.bytes;
  return site;
}

}  // namespace

void ActivityDecoder::decode_memcpy(const CUpti_Activity* record) {
  const auto& copy = *reinterpret_cast<const CUpti_ActivityMemcpy5*>(record);
  builder_.add(RecordKind::kMemcpySite, copy_site(copy), copy.correlationId, copy.start, copy.end);
}

void ActivityDecoder::decode_peer_memcpy(const CUpti_Activity* record) {
  const auto& copy = *reinterpret_cast<const CUpti_ActivityMemcpyPtoP4*>(record);
  MemcpySiteRecord site = copy_site(copy);
  site.source_device = copy.srcDeviceId;
  site.destination_device = copy.dstDeviceId;
  builder_.add(RecordKind::kMemcpySite, site, copy.correlationId, copy.start, copy.end);
}

void ActivityDecoder::decode_memset(const CUpti_Activity* record) {
  const auto& memset = *reinterpret_cast<const CUpti_ActivityMemset4*>(record);
  MemsetSiteRecord site{};
  site.device = memset.deviceId;
  site.context = memset.contextId;
  site.stream = memset.streamId;
  site.memory_kind = memset.memoryKind;
  site.graph_node = memset.graphNodeId;
  site.bytes = memset.bytes;
  builder_.add(RecordKind::kMemsetSite, site, memset.correlationId, memset.start, memset.end);
}

uint32_t ActivityDecoder::name_id(const char* name) {
  if (!name) return 0;
  auto [known, added] = name_ids_.try_emplace(name, 0);
  if (added) known->second = definitions_.kernel_name(name)->id;
  return known->second;
}

void ActivityDecoder::forget_names() {
  std::lock_guard lock(mutex_);
  name_ids_.clear();
}

// When the writer can not keep up the oldest chunk gives way and its records are counted.
void ActivityDecoder::queue_chunk() {
  waiting_.push_back(builder_.take());
  waiting_bytes_ += waiting_.back().records.size();
  while (waiting_bytes_ > max_waiting_bytes_ && waiting_.size() > 1) {
    lost_ += waiting_.front().activities;
    waiting_bytes_ -= waiting_.front().records.size();
    waiting_.pop_front();
  }
}

bool ActivityDecoder::take(ActivityChunk& chunk, bool all) {
  std::lock_guard lock(mutex_);
  if (waiting_.empty() && all && !builder_.empty()) queue_chunk();
  if (waiting_.empty()) return false;
  chunk = std::move(waiting_.front());
  waiting_.pop_front();
  waiting_bytes_ -= chunk.records.size();
  return true;
}

uint64_t ActivityDecoder::take_lost() {
  std::lock_guard lock(mutex_);
  return std::exchange(lost_, 0);
}

}  // namespace lamina
