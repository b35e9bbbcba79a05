// What one step adds to each row of the summary: small enough to keep for tens of thousands of steps.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

namespace lamina {

class StepRows {
 public:
  struct Row {
    double cuda_us = 0;  // of its own activities
    double idle_us = 0;  // the GPU's, before them
    uint64_t invocations = 0;
  };

  // The row of a node of the summary; for writing.
  Row& at(uint32_t node) {
    size_t page = node / kPageRows;
    if (page >= pages_.size()) pages_.resize(page + 1);
    if (!pages_[page]) pages_[page] = std::make_unique<Page>();
    return (*pages_[page])[node % kPageRows];
  }
  Row row(uint32_t node) const {
    size_t page = node / kPageRows;
    return page < pages_.size() && pages_[page] ? (*pages_[page])[node % kPageRows] : Row{};
  }

 private:
  // A phase's rows have numbers near each other, and a step has most of them.
  static constexpr size_t kPageRows = 32;
  using Page = std::array<Row, kPageRows>;

  std::vector<std::unique_ptr<Page>> pages_;
};

}  // namespace lamina
