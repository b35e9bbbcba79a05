// The host clock of all range times: CLOCK_MONOTONIC in nanoseconds, so that a step of the wall clock moves nothing.
#pragma once

#include <ctime>

#include <cstdint>

namespace lamina {

inline uint64_t read_clock(clockid_t clock) {
  timespec now;
  clock_gettime(clock, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000u + static_cast<uint64_t>(now.tv_nsec);
}

inline uint64_t host_now() { return read_clock(CLOCK_MONOTONIC); }
inline uint64_t realtime_now() { return read_clock(CLOCK_REALTIME); }

}  // namespace lamina
