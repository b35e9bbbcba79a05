// NVTX ranges of the domain `lamina`.
#pragma once

#include <nvtx3/nvToolsExt.h>

namespace lamina {

class RangeDomain {
 public:
  RangeDomain() : domain_(nvtxDomainCreateA("lamina")) {}

  // False when no tool listens in this process: then nothing need be hooked.
  bool attached() const { return domain_ != nullptr; }
  nvtxDomainHandle_t handle() const { return domain_; }

  nvtxStringHandle_t message(const char* text) const { return nvtxDomainRegisterStringA(domain_, text); }

  void push(nvtxStringHandle_t message) const {
    nvtxEventAttributes_t event{};
    event.version = NVTX_VERSION;
    event.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
    event.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
    event.message.registered = message;
    nvtxDomainRangePushEx(domain_, &event);
  }
  void push(const char* text) const {
    nvtxEventAttributes_t event{};
    event.version = NVTX_VERSION;
    event.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
    event.messageType = NVTX_MESSAGE_TYPE_ASCII;
    event.message.ascii = text;
    nvtxDomainRangePushEx(domain_, &event);
  }
  void pop() const { nvtxDomainRangePop(domain_); }

 private:
  nvtxDomainHandle_t domain_;
};

}  // namespace lamina
