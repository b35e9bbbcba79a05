#include "inject/definitions.h"

#include <cstring>

#include "inject/clock.h"
#include "inject/phases.h"

namespace lamina {

using namespace format;

namespace {

constexpr std::string_view kModuleMarker = "{'Module':";  // of vLLM, SGLang and TensorRT-LLM: an instance path

constexpr std::string_view kHookDomain = "lamina";  // of the PyTorch hook
constexpr std::string_view kEmitNvtxOp = ", op_id = ";
constexpr std::string_view kExtensionCall = ") <- ";
constexpr std::string_view kTritonLauncher = " <- __triton_launcher.";  // any kernel may come from there

// `aten::mm(…)` and `raw_ops.rotary_embedding(…) <- raw_ops.so`, not a module's `Linear(…) @ Net.up` nor a step.
bool is_hook_op(std::string_view text) {
  if (text.find(" @ ") != std::string_view::npos || text.find(kTritonLauncher) != std::string_view::npos) return false;
  return text.substr(0, text.find('(')).find("::") != std::string_view::npos || text.find(kExtensionCall) != std::string_view::npos;
}

constexpr uint32_t kFirstContext = kOtherContext + 1;

constexpr size_t kKeptBytes = 1u << 20;  // of an emptied buffer

}  // namespace

// Appends the record, `text` behind it and zeroes up to a whole unit. The caller holds the mutex.
template <typename Record>
void Definitions::append(RecordKind kind, uint32_t id, Record record, uint8_t flags, std::string_view text) {
  size_t size = (sizeof(Record) + text.size() + 7) / 8 * 8;
  record.header = {kind, flags, static_cast<uint16_t>(size / 8), id};
  size_t at = pending_.size();
  pending_.resize(at + size);
  memcpy(pending_.data() + at, &record, sizeof(record));
  if (!text.empty()) memcpy(pending_.data() + at + sizeof(record), text.data(), text.size());
}

const StringEntry* Definitions::string(std::string_view text, uint32_t domain) { return find_or_add(text, domain, true); }

const StringEntry* Definitions::kernel_name(const char* name) { return find_or_add(name, 0, false); }

const StringEntry* Definitions::find_or_add(std::string_view text, uint32_t domain, bool limited) {
  bool cut = text.size() > kMaxStringBytes;
  if (cut) text = text.substr(0, kMaxStringBytes);
  std::lock_guard lock(mutex_);
  if (auto found = string_ids_.find({text, domain}); found != string_ids_.end()) return found->second;
  if (limited && (strings_.size() >= kMaxStrings || text_bytes_ + text.size() > kMaxTextBytes)) {
    ++lost_strings_;
    if (!other_) other_ = new_string("(other)", 0, false);
    return other_;
  }
  return new_string(text, domain, cut);
}

const StringEntry* Definitions::new_string(std::string_view text, uint32_t domain, bool cut) {
  StringEntry& entry = strings_.emplace_back();
  entry.id = static_cast<uint32_t>(strings_.size());
  entry.domain = domain;
  auto* copy = static_cast<char*>(memory_.allocate(text.size(), 1));
  memcpy(copy, text.data(), text.size());
  entry.text = {copy, text.size()};
  text_bytes_ += text.size();
  string_ids_.emplace(Key{entry.text, domain}, &entry);
  append(RecordKind::kString, entry.id, StringRecord{{}, static_cast<uint32_t>(text.size()), domain},
         cut ? kStringCut : 0, text);
  classify(entry);
  return &entry;
}

void Definitions::classify(StringEntry& entry) {
  std::string_view text = entry.text;
  entry.unique = text.starts_with(kModuleMarker);
  bool from_hook = entry.domain != 0 && strings_[entry.domain - 1].text == kHookDomain;
  entry.is_op = (from_hook && is_hook_op(text)) || text.find(kEmitNvtxOp) != std::string_view::npos;
  if (auto phase = phase_of(text, phase_patterns_)) {
    entry.unique = true;
    entry.found = from_hook;
    auto known = string_ids_.find({*phase, 0});
    entry.phase = known != string_ids_.end() ? known->second->id : new_string(*phase, 0, false)->id;
  }
}

std::string_view Definitions::text(uint32_t id) {
  std::lock_guard lock(mutex_);
  return strings_[id - 1].text;
}

uint32_t Definitions::context(uint32_t parent, const StringEntry& name) {
  if (parent == kOtherContext) return kOtherContext;
  std::lock_guard lock(mutex_);
  uint64_t key = static_cast<uint64_t>(parent) << 32 | (name.phase != 0 ? name.phase : name.id);
  if (auto found = context_ids_.find(key); found != context_ids_.end()) return found->second;
  if (context_ids_.size() >= kMaxContexts) {
    ++lost_contexts_;
    return kOtherContext;
  }
  uint32_t id = kFirstContext + static_cast<uint32_t>(context_ids_.size());
  context_ids_.emplace(key, id);
  auto kind = name.phase != 0 ? ContextKind::kPhase : ContextKind::kRange;
  append(RecordKind::kContext, id, ContextRecord{{}, parent, name.id}, static_cast<uint8_t>(kind));
  return id;
}

void Definitions::add_step(uint32_t step, const StepOpening& opening, uint64_t time) {
  std::lock_guard lock(mutex_);
  int flags = (opening.collected ? 0 : kStepNotCollected) | (opening.found ? kStepFound : 0);
  append(RecordKind::kStep, step, StepRecord{{}, opening.phase, opening.message, time}, static_cast<uint8_t>(flags));
}

void Definitions::end_step(uint32_t step, uint64_t time) {
  std::lock_guard lock(mutex_);
  append(RecordKind::kStepEnd, step, StepEndRecord{{}, time});
}

void Definitions::add_property(std::string_view key, std::string_view value) {
  std::string text(key);
  text.push_back('\0');
  text.append(value.substr(0, kMaxStringBytes));
  std::lock_guard lock(mutex_);
  append(RecordKind::kProperty, 0,
         PropertyRecord{{}, static_cast<uint32_t>(text.size()), static_cast<uint32_t>(key.size())}, 0, text);
}

void Definitions::add_thread(uint32_t number, uint32_t tid, std::string_view name) {
  uint32_t name_id = string(name)->id;
  std::lock_guard lock(mutex_);
  append(RecordKind::kThreadName, number, ThreadNameRecord{{}, tid, name_id});
}

void Definitions::add_clock_pair() {
  ClockPairRecord record{{}, host_now(), realtime_now()};
  std::lock_guard lock(mutex_);
  append(RecordKind::kClockPair, 0, record);
}

void Definitions::add_code(uint32_t place, const CodeRecord& record) {
  std::lock_guard lock(mutex_);
  append(RecordKind::kCode, place, record);
}

void Definitions::add_stack(uint32_t stack, const StackRecord& record) {
  std::lock_guard lock(mutex_);
  append(RecordKind::kStack, stack, record);
}

void Definitions::add_loss(LossKind kind, uint64_t count) {
  if (count == 0) return;
  std::lock_guard lock(mutex_);
  append(RecordKind::kLoss, static_cast<uint32_t>(kind), LossRecord{{}, count});
}

std::span<const char> Definitions::drain() {
  std::lock_guard lock(mutex_);
  auto append_loss = [&](LossKind kind, uint64_t& count) {
    if (count > 0) append(RecordKind::kLoss, static_cast<uint32_t>(kind), LossRecord{{}, count});
    count = 0;
  };
  append_loss(LossKind::kContexts, lost_contexts_);
  append_loss(LossKind::kStrings, lost_strings_);
  drained_.clear();
  if (drained_.capacity() > kKeptBytes) drained_.shrink_to_fit();
  drained_.swap(pending_);
  return drained_;
}

}  // namespace lamina
