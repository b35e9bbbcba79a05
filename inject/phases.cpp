#include "inject/phases.h"

#include <fnmatch.h>

#include <algorithm>
#include <charconv>
#include <string>

#include "inject/clock.h"
#include "inject/definitions.h"
#include "inject/record.h"

namespace lamina {
namespace {

// The number behind `label` in `text`, if both are there.
std::optional<uint64_t> number_after(std::string_view text, std::string_view label) {
  size_t at = text.find(label);
  if (at == std::string_view::npos) return std::nullopt;
  const char* begin = text.data() + at + label.size();
  uint64_t value = 0;
  auto result = std::from_chars(begin, text.data() + text.size(), value);
  if (result.ec != std::errc()) return std::nullopt;
  return value;
}

std::optional<uint64_t> number_before(std::string_view text, std::string_view label) {
  size_t at = text.find(label);
  if (at == std::string_view::npos) return std::nullopt;
  size_t begin = at;
  while (begin > 0 && text[begin - 1] >= '0' && text[begin - 1] <= '9') --begin;
  uint64_t value = 0;
  auto result = std::from_chars(text.data() + begin, text.data() + at, value);
  if (result.ec != std::errc()) return std::nullopt;
  return value;
}

std::string_view prefill_or_decode(bool prefill) { return prefill ? "prefill" : "decode"; }

// execute_context_4(2048)_generation_0(0) of vLLM, with a word of details between in its longer form.
std::optional<std::string_view> vllm_phase(std::string_view message) {
  if (!message.starts_with("execute_")) return std::nullopt;
  auto context = number_after(message, "context_");
  auto generation = number_after(message, "_generation_");
  if (!context || !generation) return std::nullopt;
  if (*context > 0 && *generation > 0) return "mixed";
  return prefill_or_decode(*context > 0);
}

// [Executor] _forward_step 47: 0 ctx reqs, 32 gen reqs of TensorRT-LLM, and b=32 s=1 past=2090 NP4 of its layer benchmarks.
std::optional<std::string_view> tensorrt_phase(std::string_view message) {
  if (message.starts_with("[Executor] _forward_step")) {
    auto context = number_before(message, " ctx reqs");
    return context ? std::optional(prefill_or_decode(*context > 0)) : std::nullopt;
  }
  if (!message.starts_with("b=") || message.find(" past=") == std::string_view::npos) return std::nullopt;
  auto tokens = number_after(message, " s=");
  return tokens ? std::optional(prefill_or_decode(*tokens > 1)) : std::nullopt;
}

// denoising_step_3_t999 of SGLang's diffusion.
std::optional<std::string_view> diffusion_phase(std::string_view message) {
  bool matches = message.starts_with("denoising_step_") && number_after(message, "denoising_step_");
  return matches ? std::optional<std::string_view>("denoise") : std::nullopt;
}

// fnmatch wants a zero at the end.
const PhasePattern* matching_pattern(std::string_view message, const std::vector<PhasePattern>& patterns) {
  if (patterns.empty()) return nullptr;
  char buffer[1024];
  std::pmr::monotonic_buffer_resource memory(buffer, sizeof(buffer), mapped_pages());
  std::pmr::string text(message, &memory);
  for (const PhasePattern& pattern : patterns) {
    if (fnmatch(pattern.glob.c_str(), text.c_str(), 0) == 0) return &pattern;
  }
  return nullptr;
}

}  // namespace

std::optional<std::string_view> phase_of(std::string_view message, const std::vector<PhasePattern>& patterns) {
  constexpr std::string_view kPrefix = "phase:";
  if (message.starts_with(kPrefix) && message.size() > kPrefix.size()) return message.substr(kPrefix.size());
  if (const PhasePattern* pattern = matching_pattern(message, patterns)) return pattern->name;
  for (auto* phase : {vllm_phase, tensorrt_phase, diffusion_phase}) {
    if (auto found = phase(message)) return found;
  }
  return std::nullopt;
}

uint32_t Steps::open_range(const StepOpening& opening, Definitions& definitions) {
  std::lock_guard lock(mutex_);
  OpenStep step{next_step_++, opening.found};
  definitions.add_step(step.id, opening, host_now());
  open_ranges_.push_back(step);
  refresh_current();
  return step.id;
}

void Steps::close_range(uint32_t step, Definitions& definitions) {
  std::lock_guard lock(mutex_);
  if (std::erase_if(open_ranges_, [=](const OpenStep& open) { return open.id == step; }) == 0) return;
  definitions.end_step(step, host_now());
  refresh_current();
}

uint32_t Steps::open_mark(const StepOpening& opening, Definitions& definitions, uint32_t* ended) {
  std::lock_guard lock(mutex_);
  *ended = mark_.id;
  if (mark_.id != 0) definitions.end_step(mark_.id, host_now());
  mark_ = {next_step_++, opening.found};
  definitions.add_step(mark_.id, opening, host_now());
  refresh_current();
  return mark_.id;
}

uint64_t Steps::count_opening(uint32_t phase) {
  std::lock_guard lock(mutex_);
  return openings_[phase]++;
}

void Steps::refresh_current() {
  uint32_t step = next_step_ == format::kFirstStep ? format::kStartupStep : format::kNoStep;
  if (mark_.id != 0) step = mark_.id;
  if (!open_ranges_.empty()) step = open_ranges_.back().id;
  current_.store(step, std::memory_order_relaxed);
  bool named = !mark_.found || std::ranges::any_of(open_ranges_, [](const OpenStep& open) { return !open.found; });
  named_open_.store(named, std::memory_order_relaxed);
}

void Steps::forget_open() {
  open_ranges_.clear();
  refresh_current();
}

}  // namespace lamina
