// A loop to count instructions of: sim_cost launch|launch-deep|push-registered|push-text|nothing [N]. What it costs more
// than `nothing` of the same N, divided by N, is the price of one launch or of one push and pop.
#include "sim_program.h"

namespace {

void launches(long count) {
  CUfunction kernel = function("cost");
  for (long i = 0; i < count; ++i) cuLaunchKernel(kernel, 1, 1, 1, 32, 1, 1, 0, nullptr, nullptr, nullptr);
}

// A call stack as deep as that of a Python process.
template <int depth>
[[gnu::noinline]] void deep_launches(long count) {
  if constexpr (depth > 1) {
    deep_launches<depth - 1>(count);
  } else {
    launches(count);
  }
  asm volatile("" ::: "memory");  // no jump instead of the call
}

void registered_ranges(long count) {
  nvtxDomainHandle_t domain = nvtxDomainCreateA("cost");
  nvtxEventAttributes_t event{};
  event.version = NVTX_VERSION;
  event.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
  event.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
  event.message.registered = nvtxDomainRegisterStringA(domain, "model.layers.0");
  nvtxDomainRangePushEx(domain, &event);  // layers stand inside of layers
  event.message.registered = nvtxDomainRegisterStringA(domain, "model.layers.0.self_attn");
  for (long i = 0; i < count; ++i) {
    nvtxDomainRangePushEx(domain, &event);
    nvtxDomainRangePop(domain);
  }
}

void text_ranges(long count) {
  nvtxRangePushA("model.layers.0");
  for (long i = 0; i < count; ++i) {
    nvtxRangePushA("model.layers.0.self_attn");
    nvtxRangePop();
  }
}

}  // namespace

int main(int argc, char** argv) {
  std::string_view mode = argc > 1 ? argv[1] : "launch";
  long count = argc > 2 ? atol(argv[2]) : 10'000;
  start_cuda();
  sim_set_duration(10);
  launches(1);
  nvtxRangePushA("first");  // NVTX looks for its tool
  nvtxRangePop();
  if (mode == "launch") launches(count);
  if (mode == "launch-deep") deep_launches<60>(count);
  if (mode == "push-registered") registered_ranges(count);
  if (mode == "push-text") text_ranges(count);
}
