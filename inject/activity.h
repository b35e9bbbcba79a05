// CUPTI's activity buffers: hands out empty ones, turns full ones into activity chunks for the writer. Decoding happens
// in bufferCompleted, on CUPTI's thread, while the kernel names that records point to are certainly still there.
#pragma once

#include <cupti.h>

#include <cstdint>
#include <deque>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "inject/definitions.h"
#include "inject/record.h"

namespace lamina {

class Cupti;

// Records that share one site table and one base time.
struct ActivityChunk {
  uint64_t base_time = 0;
  uint64_t activities = 0;
  std::vector<char> records;
};

// Builds one chunk: finds the site of an activity among those of the chunk, adds it when it is new.
class ActivityChunkBuilder {
 public:
  template <typename Site>
  void add(format::RecordKind kind, const Site& site, uint32_t correlation, uint64_t start, uint64_t end);
  bool full() const { return chunk_.records.size() >= kFullBytes; }
  bool empty() const { return chunk_.activities == 0; }
  ActivityChunk take();

 private:
  static constexpr size_t kFullBytes = 1u << 20;

  uint32_t site_id(const char* bytes, size_t size);
  void add_times(format::ActivityRecord record, uint64_t start, uint64_t end);
  void append(const void* bytes, size_t size);
  void rehash();

  struct Slot {
    uint32_t hash = 0;
    uint32_t site = 0;  // 0: free
    uint32_t offset = 0;
  };

  ActivityChunk chunk_;
  std::vector<Slot> slots_ = std::vector<Slot>(1024);
  uint32_t sites_ = 0;
  uint64_t last_start_ = 0;
};

class ActivityDecoder {
 public:
  static constexpr size_t kBufferBytes = 256u << 10;

  ActivityDecoder(Definitions& definitions, size_t max_waiting_bytes)
      : definitions_(definitions), max_waiting_bytes_(max_waiting_bytes) {}
  ~ActivityDecoder();  // frees the buffers that CUPTI does not hold

  // bufferRequested and bufferCompleted of CUPTI. `request` never gives null while there is memory at all.
  uint8_t* request();
  void completed(Cupti& cupti, CUcontext context, uint32_t stream, uint8_t* buffer, size_t valid_bytes);

  // A module unloads: a name's address may be given to another one.
  void forget_names();

  // The next chunk for the writer; with `all` also the one still being filled. False when there is none.
  bool take(ActivityChunk& chunk, bool all);
  uint64_t take_lost();

 private:
  void decode(const CUpti_Activity* record);
  void decode_kernel(const CUpti_Activity* record);
  void decode_memcpy(const CUpti_Activity* record);
  void decode_peer_memcpy(const CUpti_Activity* record);
  void decode_memset(const CUpti_Activity* record);
  uint32_t name_id(const char* name);
  void queue_chunk();

  Definitions& definitions_;
  const size_t max_waiting_bytes_;

  std::mutex mutex_;
  ActivityChunkBuilder builder_;
  std::unordered_map<const char*, uint32_t> name_ids_;
  std::deque<ActivityChunk> waiting_;
  size_t waiting_bytes_ = 0;
  uint64_t lost_ = 0;

  std::mutex buffers_mutex_;
  std::vector<uint8_t*> free_buffers_;
};

}  // namespace lamina
