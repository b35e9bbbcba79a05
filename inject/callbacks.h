// CUPTI's callbacks: launches and memory operations of the driver API, and what becomes of graphs and their nodes.
#pragma once

#include <cupti.h>

namespace lamina {

class Cupti;

// Enables the callbacks this file handles. Driver calls are chosen by their name, so that a variant that a newer CUPTI
// adds is followed too. Call once, after Cupti::subscribe and before any work.
void enable_callbacks(Cupti& cupti);

// The functions CUPTI calls, for Cupti::subscribe.
void CUPTIAPI on_callback(void* user, CUpti_CallbackDomain domain, CUpti_CallbackId id, const void* data);
void CUPTIAPI on_buffer_requested(uint8_t** buffer, size_t* size, size_t* max_records);
void CUPTIAPI on_buffer_completed(CUcontext context, uint32_t stream, uint8_t* buffer, size_t size, size_t valid_bytes);

}  // namespace lamina
