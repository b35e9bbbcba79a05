// What an NVTX event does to the recorder: the NVTX handler says which event it was, this says what follows.
#pragma once

#include <cstdint>
#include <string_view>

namespace lamina {

struct StringEntry;

// The entry of a message; repeated messages of a thread are found without a lock. Null when nothing is recorded.
const StringEntry* find_string(std::string_view text, uint32_t domain);

int push_range(const StringEntry* name, uint32_t domain);  // both return levels as NVTX defines them
int pop_range(uint32_t domain);
uint64_t start_range(const StringEntry* name, uint32_t domain);
void end_range(uint64_t id);
void mark(const StringEntry* name);

}  // namespace lamina
