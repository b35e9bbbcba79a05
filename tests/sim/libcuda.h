// What the two halves of the simulated libcuda share: calls with their callback ids, functions and kinds of work.
#pragma once

#include <cuda.h>
#include <cupti.h>

#include "device.h"
#include "graphs.h"

// The first two arguments of an ApiCall. No macro of cuda.h replaces the name: say cuMemcpyHtoD_v2.
#define SIM_CALL(function) CUPTI_DRIVER_TRACE_CBID_##function, #function

namespace sim {

// The mangled name of a function handle.
const char* name_of(CUfunction function);

// dims: grid, block, bytes of dynamic shared memory.
Work kernel_work(CUfunction function, const unsigned (&dims)[7]);
Work copy_work(CUpti_ActivityMemcpyKind kind, uint64_t bytes, bool asynchronous);

}  // namespace sim
