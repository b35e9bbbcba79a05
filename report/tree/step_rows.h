// What one step adds to each row of the summary: small enough to keep for tens of thousands of steps.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <vector>

namespace lamina {

// The sums of a row of the summary, without the rows below it. Microseconds.
struct RowSums {
  double cuda_us = 0;              // of its own activities,
  double min_us = 0, max_us = 0;   // ... of one of them,
  double idle_us = 0;              // ... and the GPU's before them
  uint64_t invocations = 0;        // of the activity, or calls of the layer

  void add_activity(double us) {
    min_us = invocations > 0 ? std::min(min_us, us) : us;
    max_us = std::max(max_us, us);
    cuda_us += us;
    ++invocations;
  }
};

class StepRows {
 public:
  // The row of a node of the summary; for writing.
  RowSums& at(uint32_t node) {
    size_t page = node / kPageRows;
    if (page >= pages_.size()) pages_.resize(page + 1);
    if (!pages_[page]) pages_[page] = std::make_unique<Page>();
    return (*pages_[page])[node % kPageRows];
  }
  RowSums row(uint32_t node) const {
    size_t page = node / kPageRows;
    return page < pages_.size() && pages_[page] ? (*pages_[page])[node % kPageRows] : RowSums{};
  }

 private:
  // A phase's rows have numbers near each other, and a step has most of them.
  static constexpr size_t kPageRows = 32;
  using Page = std::array<RowSums, kPageRows>;

  std::vector<std::unique_ptr<Page>> pages_;
};

}  // namespace lamina
