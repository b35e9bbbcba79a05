// Builds profile files by hand, record by record. Events are given in the order in which they
// happen; flush() ends the chunks at hand, so that a test decides what stands before what in the file.
#pragma once

#include <cstring>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "inject/record.h"

namespace lamina {

// Appends a record and what follows it, zero-padded to whole units.
template <typename Record>
void append_record(std::vector<char>& into, format::RecordKind kind, uint8_t flags, uint32_t id, Record record,
                   std::string_view behind = {}) {
  size_t size = (sizeof(Record) + behind.size() + 7) / 8 * 8;
  format::RecordHeader header{kind, flags, static_cast<uint16_t>(size / 8), id};
  memcpy(&record, &header, sizeof(header));
  size_t at = into.size();
  into.resize(at + size);
  memcpy(into.data() + at, &record, sizeof(Record));
  if (!behind.empty()) memcpy(into.data() + at + sizeof(Record), behind.data(), behind.size());
}

std::string file_header(format::FileHeader header);
std::string file_header();
// A whole chunk with these records; kind, base_time, thread and sequence are the header's.
std::string chunk_bytes(format::ChunkHeader header, std::span<const char> records);

// `graph:number`, as activity and graph records name nodes.
constexpr uint64_t node_id(uint32_t graph, uint32_t number) { return static_cast<uint64_t>(graph) << 32 | number; }

class ProfileBuilder;

// One host thread's stream. Keeps the stack that the recorder would keep.
class ThreadBuilder {
 public:
  ThreadBuilder(ProfileBuilder& profile, uint32_t number) : profile_(profile), number_(number) {}

  ThreadBuilder& push(std::string_view name, std::string_view domain = {});
  ThreadBuilder& push_context(uint32_t context);  // of any id
  ThreadBuilder& pop();
  ThreadBuilder& pop_at(size_t index);  // the stack's place, 0: outermost
  // A phase range: opens a step and enters it. Ends with end_phase(), in the step that was before.
  ThreadBuilder& phase(std::string_view name, bool collected = true);
  ThreadBuilder& step_range(std::string_view text, std::string_view phase, bool collected = true);  // of any text
  ThreadBuilder& end_phase();
  ThreadBuilder& set_step(uint32_t step);
  ThreadBuilder& mark(std::string_view text);
  ThreadBuilder& state();  // the stack as it is
  uint32_t step() const { return step_; }

  ThreadBuilder& launch(uint32_t correlation, format::LaunchKind kind = format::LaunchKind::kKernel, uint8_t flags = 0);
  ThreadBuilder& launch_graph(uint32_t correlation, uint32_t exec);

  ThreadBuilder& graph(uint32_t id);
  ThreadBuilder& node(uint32_t graph, uint32_t number, std::string_view kernel = {});
  ThreadBuilder& clone_node(uint64_t node, uint64_t original);
  ThreadBuilder& clone_graph(uint32_t id, uint32_t original);  // cuGraphClone: the nodes and the record behind them
  ThreadBuilder& exec(uint32_t id, uint32_t graph);            // the instantiation is over
  ThreadBuilder& instantiate(uint32_t exec, uint32_t graph);   // graph, clones of its nodes, exec
  ThreadBuilder& destroy_graph(uint32_t id);
  ThreadBuilder& destroy_exec(uint32_t id);
  ThreadBuilder& update_node(uint32_t exec, uint32_t number, uint64_t source);
  ThreadBuilder& update(uint32_t exec, uint32_t graph);
  ThreadBuilder& set_params(uint64_t node, uint32_t exec = 0);

  // Any record of this thread's.
  template <typename Record>
  ThreadBuilder& record(format::RecordKind kind, uint8_t flags, uint32_t id, Record record) {
    append_record(records_, kind, flags, id, record);
    return *this;
  }

  void flush();
  void lose();  // what was written since the last flush() is missing in the file
  void skip_pieces(uint32_t count) { sequence_ += count; }

 private:
  struct Open {
    uint32_t context;
    uint32_t call;
    uint32_t step_before;
  };
  void copy_nodes(uint32_t to, uint32_t from);
  template <typename Record>
  ThreadBuilder& graph_record(format::RecordKind kind, uint32_t id, Record record, uint32_t other = 0,
                              uint8_t flags = 0);

  ProfileBuilder& profile_;
  uint32_t number_;
  uint32_t sequence_ = 0;
  uint32_t calls_ = 0;
  uint32_t step_ = format::kStartupStep;
  std::vector<Open> open_;
  std::vector<char> records_;
};

class ProfileBuilder {
 public:
  // What is special about an activity.
  struct Ran {
    uint64_t node = 0;
    uint64_t start = 0;  // 0: after the one before
    uint32_t stream = 7;
    bool timed = true;
    uint32_t device = 0;
  };

  uint32_t string(std::string_view text, std::string_view domain = {});
  uint32_t context(uint32_t parent, uint32_t name, format::ContextKind kind = format::ContextKind::kRange);
  uint32_t add_step(std::string_view phase, bool collected = true, uint32_t message = 0, bool found = false);
  void end_step(uint32_t step);
  void property(std::string_view key, std::string_view value);

  ThreadBuilder& thread(uint32_t number = 0);

  void kernel(uint32_t correlation, std::string_view name, double us, Ran ran);
  void kernel(uint32_t correlation, std::string_view name, double us) { kernel(correlation, name, us, {}); }
  void memcpy_htod(uint32_t correlation, double us, uint64_t node = 0);
  void memset_device(uint32_t correlation, double us, uint64_t node = 0);

  template <typename Record>
  void define(format::RecordKind kind, uint8_t flags, uint32_t id, Record record, std::string_view behind = {}) {
    append_record(definitions_, kind, flags, id, record, behind);
  }

  void flush();                            // definitions, threads by number, activity
  void add_bytes(std::string_view bytes);  // as they are, behind what was flushed
  void lose_definitions() { definitions_.clear(); }
  std::string bytes(bool with_trailer = true);

  uint64_t tick() { return host_time_ += 1000; }
  std::vector<size_t> chunk_offsets() const { return offsets_; }
  uint64_t activities() const { return activities_; }

  // Numbers the graph records; a test may set it back or ahead.
  uint32_t graph_records = 0;

 private:
  friend class ThreadBuilder;
  void add_chunk(format::ChunkHeader header, std::vector<char>& records);
  template <typename Site>
  void activity(format::RecordKind kind, Site site, uint32_t correlation, double us, Ran ran);

  std::string file_ = file_header();
  std::vector<size_t> offsets_;
  std::vector<char> definitions_;
  std::vector<char> activity_;
  uint64_t base_time_ = 0;
  uint64_t last_start_ = 0;
  uint64_t gpu_time_ = 1'700'000'000'000'000'000;
  std::map<std::vector<char>, uint32_t> sites_;  // of the chunk at hand, by their bytes without an id
  uint64_t activities_ = 0;
  uint64_t host_time_ = 1'000'000;
  uint32_t steps_ = format::kFirstStep;
  uint32_t contexts_ = 2;
  uint32_t string_count_ = 0;
  std::map<std::pair<std::string, std::string>, uint32_t> strings_;
  std::map<std::pair<uint32_t, uint32_t>, uint32_t> context_ids_;
  std::map<uint32_t, ThreadBuilder> threads_;
  std::map<uint32_t, std::vector<uint32_t>> nodes_;  // of each graph
};

}  // namespace lamina
