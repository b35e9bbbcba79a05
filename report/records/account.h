// The completeness account of one process: what was launched, what came back, what is missing and why.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace lamina {

struct Account {
  // Launches, by format::LaunchKind (kernel, memcpy, memset, graph).
  std::array<uint64_t, 4> launches{};  // that were executed while activity was recorded
  uint64_t captured = 0;
  uint64_t failed = 0;
  uint64_t not_collected = 0;       // activity was off by --collect or --every
  uint64_t without_activity = 0;    // kernel launches for which no kernel came

  // Activity, by ActivityKind (kernel, memcpy, memset).
  std::array<uint64_t, 3> activities{};
  uint64_t without_time = 0;
  uint64_t out_of_order = 0;  // too far to count in the times of the GPU (device_time.h)
  uint64_t not_shown = 0;  // of steps that were not to be collected
  std::array<uint64_t, 6> by_placement{};  // by Placement
  double total_us = 0;  // of all activities

  std::vector<std::string> context_marks;  // the JSON of `lamina:context {json}`
  uint64_t damaged_records = 0;
  uint64_t lost_pieces = 0;  // of thread streams
  std::map<uint32_t, uint64_t> missing_in_step;  // kernel launches without their kernel, by step; no zeros
};

}  // namespace lamina
