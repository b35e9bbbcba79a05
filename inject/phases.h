// Which NVTX messages open a phase, and which step the process is in.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "inject/callback_memory.h"
#include "inject/options.h"

namespace lamina {

class Definitions;
struct StepOpening;

// The phase that a range or mark with this message opens: `phase:NAME`, a pattern of the user's, or a step marker of vLLM
// (prefill, decode, or mixed), TensorRT-LLM (prefill or decode) or SGLang's diffusion (denoise). Part of the message, of the pattern
// or a constant.
std::optional<std::string_view> phase_of(std::string_view message, const std::vector<PhasePattern>& patterns);

// Steps of the whole process. Openings are rare (one a step), so a mutex guards all but the current step.
class Steps {
 public:
  // Opens a step. A mark's ends when the next mark opens one, a range's with the first close_range(). Returns its id.
  uint32_t open_range(const StepOpening& opening, Definitions& definitions);
  void close_range(uint32_t step, Definitions& definitions);
  // `ended` receives the step that the mark replaced, 0 if none.
  uint32_t open_mark(const StepOpening& opening, Definitions& definitions, uint32_t* ended);

  // How often the phase was opened before, counting this opening: 0, 1, 2, ...
  uint64_t count_opening(uint32_t phase);

  // Whether the program is in a step that it names itself.
  bool named_is_open() const { return named_open_.load(std::memory_order_relaxed); }

  // The step of a thread without a phase range of its own.
  const std::atomic<uint32_t>& current_step() const { return current_; }

  std::mutex& mutex() { return mutex_; }
  void forget_open();  // in a forked child, where no range of the parent's goes on

 private:
  void refresh_current();

  std::mutex mutex_;
  CallbackMemory memory_;
  struct OpenStep {
    uint32_t id;
    bool found;
  };
  std::pmr::vector<OpenStep> open_ranges_{&memory_};  // in order of opening
  OpenStep mark_{0, true};
  uint32_t next_step_ = 2;  // format::kFirstStep
  std::pmr::unordered_map<uint32_t, uint64_t> openings_{&memory_};
  std::atomic<uint32_t> current_{0};
  std::atomic<bool> named_open_{false};
};

}  // namespace lamina
