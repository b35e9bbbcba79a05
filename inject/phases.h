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

// The phase that a range or mark with this message opens: `phase:NAME`, a pattern of the user's, or a step marker of
// vLLM or TensorRT-LLM (prefill when the step has context requests, else decode). Part of the message, of the pattern
// or a constant.
std::optional<std::string_view> phase_of(std::string_view message, const std::vector<PhasePattern>& patterns);

// Steps of the whole process. Openings are rare (one a step), so a mutex guards all but the current step.
class Steps {
 public:
  // Opens a step of the phase; `collected` goes into its record. A mark's step ends when the next mark opens one, a
  // range's with the first close_range(). Returns the step's id.
  uint32_t open_range(uint32_t phase, bool collected, Definitions& definitions);
  void close_range(uint32_t step, Definitions& definitions);
  // `ended` receives the step that the mark replaced, 0 if none.
  uint32_t open_mark(uint32_t phase, bool collected, Definitions& definitions, uint32_t* ended);

  // How often the phase was opened before, counting this opening: 0, 1, 2, ...
  uint64_t count_opening(uint32_t phase);

  // The step of a thread without a phase range of its own.
  const std::atomic<uint32_t>& current_step() const { return current_; }

  std::mutex& mutex() { return mutex_; }
  void forget_open();  // in a forked child, where no range of the parent's goes on

 private:
  uint32_t begin_step(uint32_t phase, bool collected, Definitions& definitions);
  void refresh_current();

  std::mutex mutex_;
  CallbackMemory memory_;
  std::pmr::vector<uint32_t> open_ranges_{&memory_};  // in order of opening
  uint32_t mark_step_ = 0;
  uint32_t next_step_ = 2;  // format::kFirstStep
  std::pmr::unordered_map<uint32_t, uint64_t> openings_{&memory_};
  std::atomic<uint32_t> current_{0};
};

}  // namespace lamina
