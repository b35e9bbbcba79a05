// What a test program can ask of the simulated device beyond the driver API. Everything else is set by environment
// variables, read once at the first use:
//   SIM_CUPTI_VERSION=12        records and callbacks of CUPTI 12 (no node updates); else 13
//   SIM_FIRST_CORRELATION=N     where correlation ids start (0xfffffff0 wraps soon)
//   SIM_REFUSE_SUBSCRIBE=1      another profiler holds CUPTI
//   SIM_BUFFER_RECORDS=N        a buffer is full after N records
//   SIM_CUPTI_THREAD=1          buffers are completed on a thread of CUPTI's
//   SIM_EARLY=1                 records are delivered before the launch returns
//   SIM_LATE=N                  a record is written only after N others came behind it, or at a forced flush
//   SIM_OUT_OF_ORDER=1          records come shuffled, buffers in reverse order
//   SIM_WITHHOLD=1              no buffer is completed before a forced flush
//   SIM_DROP_EVERY=N            every N-th record is dropped and counted
//   SIM_ZERO_TIMES_EVERY=N      every N-th record has no times
//   SIM_INTERNAL_EVERY=N        behind every N-th launch the driver launches a kernel of its own, without callbacks
//   SIM_FLUSH_HANG_MS=N         a flush takes N ms more
//   SIM_SLOW_THREAD_END_MS=N    a thread that has flushed takes N ms more to end, when nearly all else of it is gone
//   SIM_REUSE_NAMES=1           names of an unloaded module's kernels are overwritten by those of the next
// The simulation ends the program with a message (abort) where real CUPTI would crash or hang: a null buffer, CUDA
// calls or flushes inside of callbacks, CUPTI in a forked child.
#pragma once

#include <cuda.h>

#ifdef __cplusplus
extern "C" {
#endif

// Duration of what this thread launches, or adds to graphs, from now on. At first 1000 ns.
void sim_set_duration(unsigned long long nanoseconds);

// A kernel that the driver launches by itself: a record without any callback.
void sim_launch_internal(CUstream stream, const char* name);

// A conditional node with `bodies` empty bodies. Body i runs runs[i] times in every launch.
CUgraphNode sim_add_conditional(CUgraph graph, unsigned bodies, const unsigned* runs, CUgraph* bodies_out);

#ifdef __cplusplus
}
#endif
