// The whole report over one input, as the commands run it. Shared by the fuzzer and by the regression test.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace lamina {

// Takes the input as a profile file. Only InputError may come of it, and is caught here.
void read_as_profile(std::span<const uint8_t> file);

// Takes the input as records of chunks, so that no checksum keeps them from being read: each chunk is a byte for its
// kind and two for its length, then that many bytes.
void read_as_records(std::span<const uint8_t> input);

}  // namespace lamina
