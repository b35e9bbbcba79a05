// Slices of one track nest. What would overlap goes into further lanes, each a track of its own.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace lamina {

inline constexpr size_t kMaxLanes = 64;  // what needs more is not drawn

// For slices that come in order of their begin and never nest, such as kernels.
class DisjointLanes {
 public:
  // The first lane, from this one on, that is free at `begin`, which then is taken until `end`.
  std::optional<size_t> take(uint64_t begin, uint64_t end, size_t first = 0) {
    ends_.resize(std::max(ends_.size(), first));
    for (size_t lane = first; lane < kMaxLanes; ++lane) {
      if (lane == ends_.size()) ends_.push_back(0);
      if (ends_[lane] > begin) continue;
      ends_[lane] = end;
      return lane;
    }
    return std::nullopt;
  }

 private:
  std::vector<uint64_t> ends_;  // by lane
};

// For ranges that open and close in order of time, but may close in another order than the reverse of their opening.
template <typename Payload>
class NestingLanes {
 public:
  struct Range {
    Payload what;
    uint64_t begin;
    uint64_t taken = 0;  // bit by lane: something there overlaps this range and began before it
  };

  std::vector<Range>& open() { return open_; }  // in order of opening
  void add(Payload what, uint64_t begin) { open_.push_back({std::move(what), begin}); }

  // The lane of the range with this place among the open ones. It overlaps those opened after it that are still open.
  std::optional<size_t> close(size_t place) {
    size_t lane = static_cast<size_t>(std::countr_one(open_[place].taken));
    open_.erase(open_.begin() + static_cast<long>(place));
    if (lane >= kMaxLanes) return std::nullopt;
    for (size_t i = place; i < open_.size(); ++i) open_[i].taken |= uint64_t{1} << lane;
    return lane;
  }

 private:
  std::vector<Range> open_;
};

}  // namespace lamina
