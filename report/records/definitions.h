// What the ids in one profile file mean, collected from its definition records as they come.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "inject/record.h"
#include "report/records/profile_file.h"

namespace lamina {

struct StringInfo {
  std::string text;
  uint32_t domain = 0;  // string id
  bool defined = false;
};

struct ContextInfo {
  uint32_t parent = 0;
  uint32_t name = 0;  // string id
  format::ContextKind kind = format::ContextKind::kRange;
};

struct StepInfo {
  uint32_t phase = 0;    // string id
  uint32_t message = 0;  // string id of the range or mark that opened it
  uint32_t number = 0;   // of the phase's steps in this process, from 1; found ones are counted apart
  bool collected = true;
  bool found = false;        // by the PyTorch hook
  bool after_named = false;  // the program has named a step before
  uint64_t begin = 0;  // host clock, ns
  uint64_t end = 0;    // 0: never ended
};

// A place in the program's code. String ids, 0: not known.
struct CodeInfo {
  uint32_t module = 0, build_id = 0, function = 0, file = 0;
  uint32_t line = 0;
  bool is_python = false;
  uint64_t offset = 0;
};

// A frame of call stacks.
struct StackInfo {
  uint32_t parent = 0;  // the frame outside; 0: none
  uint32_t code = 0;    // 0: it is no frame, but what its parent launches
  uint32_t kernel = 0;  // string id of the mangled name of what is launched from here
};

struct ThreadInfo {
  uint32_t tid = 0;
  uint32_t name = 0;  // string id
};

class ProcessDefinitions {
 public:
  // Takes in a definition record; others are ignored. Returns false for a record that is too short or impossible.
  bool add(const RecordView& record);

  // An id that is not defined (its chunk was damaged) gives "(unknown)".
  std::string_view text(uint32_t string) const;
  const StringInfo* string(uint32_t id) const;
  const ContextInfo* context(uint32_t id) const;
  const StepInfo* step(uint32_t id) const;
  const CodeInfo* code(uint32_t id) const;
  const StackInfo* stack(uint32_t id) const;
  size_t contexts() const { return contexts_.size(); }

  const std::map<std::string, std::string>& properties() const { return properties_; }
  const std::unordered_map<uint32_t, ThreadInfo>& threads() const { return threads_; }
  const std::map<format::LossKind, uint64_t>& losses() const { return losses_; }
  const std::unordered_map<uint32_t, StepInfo>& steps() const { return steps_; }
  // Host clock to CLOCK_REALTIME by the nearest pair before; 0 without any pair.
  uint64_t realtime(uint64_t host_time) const;

 private:
  bool add_string(const RecordView& record);
  bool add_property(const RecordView& record);
  bool add_step(const RecordView& record);
  bool add_code(const RecordView& record);
  bool add_stack(const RecordView& record);

  std::vector<StringInfo> strings_;  // by id
  std::vector<ContextInfo> contexts_;
  std::vector<CodeInfo> codes_;
  std::vector<StackInfo> stacks_;
  std::unordered_map<uint32_t, StepInfo> steps_;
  std::unordered_map<uint32_t, uint32_t> step_counts_, found_step_counts_;  // by phase
  std::map<std::string, std::string> properties_;
  std::unordered_map<uint32_t, ThreadInfo> threads_;
  std::map<format::LossKind, uint64_t> losses_;
  std::map<uint64_t, uint64_t> clock_pairs_;
};

}  // namespace lamina
