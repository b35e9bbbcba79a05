// What an NVTX event does to the recorder: the NVTX handler says which event it was, this says what follows.
#pragma once

#include <cstdint>
#include <string_view>

namespace lamina {

class Recorder;
class ThreadLog;
struct StringEntry;

// The entry of a message; repeated messages of a thread are found without a lock. Null when nothing is recorded.
const StringEntry* find_string(std::string_view text, uint32_t domain);

// The hot path. All return levels as NVTX defines them, and let no exception out.
int push_range(const StringEntry* name, uint32_t domain) noexcept;
int push_text(std::string_view text) noexcept;  // in the default domain
int pop_range(uint32_t domain) noexcept;

uint64_t start_range(const StringEntry* name, uint32_t domain);
void end_range(uint64_t range);
void mark(const StringEntry* name);

// Closes the calling thread's ranges of nvtxRangeStart that another thread has ended. Needed only where the thread has
// any (ThreadLog::has_start_end), before its stack counts for something.
void close_ended_ranges(Recorder& recorder, ThreadLog& log);

// The calling thread ends: pushed ranges end with it, started ones may be ended by others.
void end_thread(Recorder& recorder, ThreadLog& log);

}  // namespace lamina
