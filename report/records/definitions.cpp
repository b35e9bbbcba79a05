#include "report/records/definitions.h"

namespace lamina {

using namespace format;

namespace {

// Ids are dense; one far beyond what is there is damage, not a reason to take gigabytes.
constexpr uint32_t kMaxIds = 1u << 22;

}  // namespace

bool ProcessDefinitions::add(const RecordView& record) {
  uint32_t id = record.header().id;
  switch (record.header().kind) {
    case RecordKind::kString: return add_string(record);
    case RecordKind::kProperty: return add_property(record);
    case RecordKind::kStep: return add_step(record);
    case RecordKind::kCode: return add_code(record);
    case RecordKind::kStack: return add_stack(record);
    case RecordKind::kContext: {
      auto context = record.as<ContextRecord>();
      if (!context || id >= kMaxIds || context->parent >= id) return false;  // a parent is defined before its child
      if (id >= contexts_.size()) contexts_.resize(id + 1);
      contexts_[id] = {context->parent, context->name, static_cast<ContextKind>(record.header().flags)};
      return true;
    }
    case RecordKind::kStepEnd: {
      auto end = record.as<StepEndRecord>();
      auto step = steps_.find(id);
      if (!end || step == steps_.end()) return false;
      step->second.end = end->time;
      return true;
    }
    case RecordKind::kClockPair: {
      auto pair = record.as<ClockPairRecord>();
      if (!pair) return false;
      clock_pairs_[pair->host_time] = pair->realtime;
      return true;
    }
    case RecordKind::kLoss: {
      auto loss = record.as<LossRecord>();
      if (!loss) return false;
      losses_[static_cast<LossKind>(id)] += loss->count;
      return true;
    }
    case RecordKind::kThreadName: {
      auto thread = record.as<ThreadNameRecord>();
      if (!thread) return false;
      threads_[id] = {thread->tid, thread->name};
      return true;
    }
    default: return true;
  }
}

bool ProcessDefinitions::add_string(const RecordView& record) {
  auto string = record.as<StringRecord>();
  uint32_t id = record.header().id;
  if (!string || id >= kMaxIds) return false;
  auto text = record.behind<StringRecord>(string->size);
  if (text.size() < string->size) return false;
  if (id >= strings_.size()) strings_.resize(id + 1);
  strings_[id] = {std::string(text.begin(), text.end()), string->domain, true};
  return true;
}

bool ProcessDefinitions::add_property(const RecordView& record) {
  auto property = record.as<PropertyRecord>();
  if (!property) return false;
  auto text = record.behind<PropertyRecord>(property->size);
  if (text.size() < property->size || property->key_size >= property->size) return false;
  std::string key(text.begin(), text.begin() + property->key_size);
  properties_[key] = std::string(text.begin() + property->key_size + 1, text.end());
  return true;
}

bool ProcessDefinitions::add_step(const RecordView& record) {
  auto step = record.as<StepRecord>();
  if (!step) return false;
  bool found = record.header().flags & kStepFound;
  auto& counts = found ? found_step_counts_ : step_counts_;
  steps_[record.header().id] = {.phase = step->phase,
                                .message = step->message,
                                .number = ++counts[step->phase],
                                .collected = !(record.header().flags & kStepNotCollected),
                                .found = found,
                                .after_named = !step_counts_.empty(),
                                .begin = step->time};
  return true;
}

bool ProcessDefinitions::add_code(const RecordView& record) {
  auto code = record.as<CodeRecord>();
  uint32_t id = record.header().id;
  if (!code || id == 0 || id >= kMaxIds) return false;
  if (id >= codes_.size()) codes_.resize(id + 1);
  codes_[id] = {code->module, code->build_id, code->function, code->file, code->line, code->language == CodeLanguage::kPython, code->offset};
  return true;
}

bool ProcessDefinitions::add_stack(const RecordView& record) {
  auto stack = record.as<StackRecord>();
  uint32_t id = record.header().id;
  if (!stack || id >= kMaxIds || stack->parent >= id) return false;  // a parent is defined before its child
  if (id >= stacks_.size()) stacks_.resize(id + 1);
  stacks_[id] = {stack->parent, stack->code, stack->kernel};
  return true;
}

std::string_view ProcessDefinitions::text(uint32_t id) const {
  const StringInfo* info = string(id);
  return info ? std::string_view(info->text) : std::string_view("(unknown)");
}

const StringInfo* ProcessDefinitions::string(uint32_t id) const {
  return id > 0 && id < strings_.size() && strings_[id].defined ? &strings_[id] : nullptr;
}

const ContextInfo* ProcessDefinitions::context(uint32_t id) const {
  return id < contexts_.size() && contexts_[id].name != 0 ? &contexts_[id] : nullptr;
}

const CodeInfo* ProcessDefinitions::code(uint32_t id) const { return id > 0 && id < codes_.size() ? &codes_[id] : nullptr; }

const StackInfo* ProcessDefinitions::stack(uint32_t id) const {
  bool defined = id < stacks_.size() && (stacks_[id].code != 0 || stacks_[id].kernel != 0);
  return defined ? &stacks_[id] : nullptr;
}

const StepInfo* ProcessDefinitions::step(uint32_t id) const {
  auto found = steps_.find(id);
  return found != steps_.end() ? &found->second : nullptr;
}

uint64_t ProcessDefinitions::realtime(uint64_t host_time) const {
  if (clock_pairs_.empty()) return 0;
  auto pair = clock_pairs_.upper_bound(host_time);
  if (pair != clock_pairs_.begin()) --pair;
  return pair->second + (host_time - pair->first);
}

}  // namespace lamina
