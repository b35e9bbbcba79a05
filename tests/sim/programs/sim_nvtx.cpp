// All of NVTX that says where a kernel belongs, used well and badly. Each case has a phase of its name. A row of kind
// "below" only says that the kernel must be found under the path, at whatever depth.
#include <nvtx3/nvToolsExtSync.h>
#include <sys/syscall.h>

#include <stdexcept>
#include <thread>

#include "sim_program.h"

namespace {

void kernel(const std::string& name, const Path& path) {
  launch_only(name);
  expect(current_phase(), path, name);
}

nvtxEventAttributes_t attributes(const char* text) {
  nvtxEventAttributes_t event{};
  event.version = NVTX_VERSION;
  event.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
  event.messageType = NVTX_MESSAGE_TYPE_ASCII;
  event.message.ascii = text;
  event.colorType = NVTX_COLOR_ARGB;
  event.color = 0xff00ff00;
  event.payloadType = NVTX_PAYLOAD_TYPE_INT64;
  event.payload.llValue = 42;
  return event;
}

nvtxEventAttributes_t attributes(nvtxStringHandle_t text) {
  nvtxEventAttributes_t event = attributes("");
  event.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
  event.message.registered = text;
  return event;
}

void push_pop() {
  kernel("outside", {});
  nvtxRangePushA("a");
  nvtxRangePushW(L"breit \u00e9\u03a9\U0001f600");
  kernel("in_wide", {"a", "breit \u00e9\u03a9\U0001f600"});
  nvtxRangePop();
  nvtxRangePushA("");
  kernel("in_empty", {"a", "(unnamed)"});
  nvtxRangePop();
  nvtxMarkA("a mark");
  nvtxMarkW(L"another");
  kernel("in_a", {"a"});
  nvtxRangePop();
  kernel("outside", {});
}

void start_end() {
  nvtxRangeId_t outer = nvtxRangeStartA("outer");
  nvtxRangeId_t inner = nvtxRangeStartW(L"inner");
  kernel("in_both", {"outer", "inner"});
  nvtxRangeEnd(outer);  // overlapping: the inner one stays
  kernel("in_inner", {"inner"});
  nvtxRangeEnd(inner);
  nvtxRangeEnd(inner);
  nvtxRangeEnd(0);
  nvtxRangeEnd(123456789);
  kernel("in_none", {});
}

void ended_elsewhere() {
  nvtxRangeId_t range = nvtxRangeStartA("ended_by_thread");
  kernel("before_end", {"ended_by_thread"});
  std::thread([range] {
    nvtxRangeEnd(range);
    nvtxRangeEnd(range);
  }).join();
  kernel("after_end", {});  // the launch is this thread's first event since
  nvtxRangeId_t of_thread = 0;
  std::thread([&] {
    start_cuda();
    own_phase = current_phase();
    of_thread = nvtxRangeStartA("outlives_its_thread");
    kernel("in_thread", {"outlives_its_thread"});
  }).join();
  nvtxRangeEnd(of_thread);
  kernel("after_thread", {});
}

void domains() {
  nvtxDomainHandle_t a = nvtxDomainCreateA("domain_a"), b = nvtxDomainCreateW(L"domain_b");
  nvtxStringHandle_t text = nvtxDomainRegisterStringA(a, "registered_a");
  nvtxEventAttributes_t in_a = attributes(text), in_b = attributes("plain_b");
  nvtxDomainRangePushEx(a, &in_a);
  nvtxDomainRangePushEx(b, &in_b);
  nvtxRangePushA("default");
  kernel("in_all", {"registered_a", "plain_b", "default"});
  nvtxDomainRangePop(a);
  kernel("without_a", {"plain_b", "default"});
  nvtxDomainRangePop(a);  // nothing is open there
  nvtxRangePop();
  kernel("in_b", {"plain_b"});
  nvtxRangeId_t id = nvtxDomainRangeStartEx(a, &in_a);
  nvtxDomainMarkEx(b, &in_b);
  kernel("in_b_a", {"plain_b", "registered_a"});
  nvtxDomainRangeEnd(a, id);
  nvtxDomainRangePop(b);
  kernel("in_none", {});
  nvtxDomainDestroy(a);
  nvtxDomainDestroy(b);
}

void event_attributes() {
  nvtxEventAttributes_t event = attributes("with_attributes"), nameless = attributes("not looked at");
  nvtxStringHandle_t text = nvtxDomainRegisterStringW(nullptr, L"registered_wide");
  nvtxEventAttributes_t registered = attributes(text);
  nameless.messageType = NVTX_MESSAGE_UNKNOWN;
  nvtxRangePushEx(&event);
  nvtxRangePushEx(&registered);
  kernel("in_registered", {"with_attributes", "registered_wide"});
  nvtxRangePushEx(&nameless);
  launch_only("in_nameless");
  expect(current_phase(), {"with_attributes", "registered_wide"}, "in_nameless", 1, "below");
  for (int i = 0; i < 3; ++i) nvtxRangePop();
  nvtxMarkEx(&event);
}

void unbalanced() {
  for (int i = 0; i < 3; ++i) nvtxRangePop();  // the phase goes with the first
  own_phase.clear();
  process_phase = "(none)";
  kernel("after_pops", {});
  std::thread([] {
    start_cuda();
    nvtxRangePushA("never_closed");
    nvtxRangePushA("nor_this");
    kernel("in_never_closed", {"never_closed", "nor_this"});
  }).join();
  nvtxRangePushA("closed");
  kernel("in_closed", {"closed"});
  nvtxRangePop();
}

void deep() {
  constexpr int kDepth = 1000;
  Path path;
  for (int i = 0; i < kDepth; ++i) {
    nvtxRangePushA(("d" + std::to_string(i)).c_str());
    if (i < 200) path.push_back("d" + std::to_string(i));
    if (i == 199) kernel("at_200", path);
  }
  launch_only("at_1000");
  expect(current_phase(), path, "at_1000", 1, "below");
  for (int i = 0; i < kDepth - 10; ++i) nvtxRangePop();
  path.resize(10);
  kernel("at_10", path);
  for (int i = 0; i < 10; ++i) nvtxRangePop();
  kernel("at_0", {});
}

void step_that_throws(int step) {
  own_phase = process_phase = "throws";
  nvtxRangePushA("phase:throws");
  nvtxRangePushA("model");
  for (int i = 0; i < (step == 1 ? 400 : 1); ++i) nvtxRangePushA("layer");  // deeper than a recorder may keep
  if (step < 2) throw std::runtime_error("ranges stay open");
  kernel("in_third_step", {"model", "layer"});
  for (int i = 0; i < 2; ++i) nvtxRangePop();
  kernel("behind_model", {});
  nvtxRangePop();
  own_phase.clear();
  process_phase = "(none)";
  kernel("behind_third_step", {});
}

// A phase opened again ends the one that an exception left open, with all that is in it.
void exceptions() {
  for (int step = 0; step < 3; ++step) {
    try {
      step_that_throws(step);
    } catch (const std::runtime_error&) {
    }
  }
}

void started_phase() {
  nvtxRangeId_t phase = nvtxRangeStartA("phase:started");
  own_phase = process_phase = "started";
  kernel("in_started_phase", {});
  std::thread([phase] { nvtxRangeEnd(phase); }).join();
  own_phase.clear();
  process_phase = "(none)";
  kernel("behind_started_phase", {});
}

// What has nothing to do with ranges must do no harm.
void names() {
  nvtxNameOsThreadA(static_cast<uint32_t>(syscall(SYS_gettid)), "main");
  nvtxNameCategoryA(1, "category");
  nvtxRangePushA(std::string(100'000, 'x').c_str());
  launch_only("in_long_name");
  expect(current_phase(), {}, "in_long_name", 1, "below");
  nvtxRangePop();
  nvtxRangePushA(nullptr);
  nvtxRangePop();
  for (int i = 0; i < 5000; ++i) {
    nvtxRangePushA(("volatile op_id = " + std::to_string(i)).c_str());
    nvtxRangePop();
  }
  nvtxDomainHandle_t domain = nvtxDomainCreateA("resources");
  nvtxSyncUserAttributes_t lock{};
  lock.version = NVTX_VERSION;
  lock.size = NVTX_SYNCUSER_ATTRIB_STRUCT_SIZE;
  nvtxDomainSyncUserDestroy(nvtxDomainSyncUserCreate(domain, &lock));
  kernel("in_none", {});
}

struct Case {
  const char* name;
  void (*run)();
};
constexpr Case kCases[] = {
    {"push_pop", push_pop}, {"start_end", start_end},         {"ended_elsewhere", ended_elsewhere},
    {"domains", domains},   {"attributes", event_attributes}, {"deep", deep},
    {"names", names},
};

}  // namespace

int main() {
  process_phase = "startup";
  start_cuda();
  for (const Case& one : kCases) {
    Phase phase(one.name);
    one.run();
  }
  exceptions();
  started_phase();
  nvtxRangePushA("phase:unbalanced");
  unbalanced();
  CHECK(cuCtxSynchronize());
  expectations.print();
}
