// NVTX for calls: one domain, registered strings, and texts that outlive all threads.
#pragma once

#include <nvtx3/nvToolsExt.h>

#include <string>

namespace lamina {

// The domain "lamina"; null until calls are observed, and where no tool is attached to NVTX.
inline nvtxDomainHandle_t g_domain = nullptr;

class Text {
 public:
  explicit Text(std::string text);

  // Without a handle (a tool may know of no registered strings) the text itself goes along.
  nvtxEventAttributes_t event() const {
    nvtxEventAttributes_t attributes{};
    attributes.version = NVTX_VERSION;
    attributes.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
    attributes.messageType = handle_ ? NVTX_MESSAGE_TYPE_REGISTERED : NVTX_MESSAGE_TYPE_ASCII;
    if (handle_) {
      attributes.message.registered = handle_;
    } else {
      attributes.message.ascii = text_.c_str();
    }
    return attributes;
  }

 private:
  nvtxStringHandle_t handle_;
  std::string text_;
};

inline Text::Text(std::string text)
    : handle_(nvtxDomainRegisterStringA(g_domain, text.c_str())), text_(handle_ ? std::string() : std::move(text)) {}

inline void push(const Text& text) {
  nvtxEventAttributes_t event = text.event();
  nvtxDomainRangePushEx(g_domain, &event);
}
inline void push(const char* text) {
  nvtxEventAttributes_t event{};
  event.version = NVTX_VERSION;
  event.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
  event.messageType = NVTX_MESSAGE_TYPE_ASCII;
  event.message.ascii = text;
  nvtxDomainRangePushEx(g_domain, &event);
}
inline void pop() { nvtxDomainRangePop(g_domain); }

}  // namespace lamina
