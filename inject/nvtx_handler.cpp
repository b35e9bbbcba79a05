#include "inject/nvtx_handler.h"

#include <nvtx3/nvToolsExt.h>
#include <nvtx3/nvToolsExtPayload.h>

#include <cstddef>
#include <cstring>
#include <cwchar>
#include <string>
#include <string_view>

#include "inject/callback_memory.h"
#include "inject/guarded.h"
#include "inject/ranges.h"
#include "inject/recorder.h"

namespace lamina {
namespace {

constexpr std::string_view kUnnamed = "(unnamed)";
constexpr size_t kMaxText = format::kMaxStringBytes + 1;  // one more than is kept, so that a cut is noticed

// ---- texts

const StringEntry* ascii(const char* text, uint32_t domain) {
  if (!text) return find_string(kUnnamed, domain);
  return find_string({text, strnlen(text, kMaxText)}, domain);
}

void append_utf8(std::pmr::string& out, uint32_t c) {
  bool is_character = c < 0xd800 || (c >= 0xe000 && c <= 0x10ffff);
  if (!is_character) c = 0xfffd;
  if (c < 0x80) {
    out += static_cast<char>(c);
  } else if (c < 0x800) {
    out += {static_cast<char>(0xc0 | c >> 6), static_cast<char>(0x80 | (c & 0x3f))};
  } else if (c < 0x10000) {
    out += {static_cast<char>(0xe0 | c >> 12), static_cast<char>(0x80 | (c >> 6 & 0x3f)), static_cast<char>(0x80 | (c & 0x3f))};
  } else {
    out += {static_cast<char>(0xf0 | (c >> 18 & 7)), static_cast<char>(0x80 | (c >> 12 & 0x3f)),
            static_cast<char>(0x80 | (c >> 6 & 0x3f)), static_cast<char>(0x80 | (c & 0x3f))};
  }
}

const StringEntry* wide(const wchar_t* text, uint32_t domain) {
  if (!text) return find_string(kUnnamed, domain);
  char buffer[1024];
  std::pmr::monotonic_buffer_resource memory(buffer, sizeof(buffer), mapped_pages());
  std::pmr::string utf8(&memory);
  for (; *text && utf8.size() < kMaxText; ++text) append_utf8(utf8, static_cast<uint32_t>(*text));
  return find_string(utf8, domain);
}

// The handles that this tool gives out: a domain is the entry of its name, a registered string its own entry.
uint32_t domain_id(nvtxDomainHandle_t domain) { return domain ? reinterpret_cast<const StringEntry*>(domain)->id : 0; }

constexpr size_t kNeededSize = offsetof(nvtxEventAttributes_t, message) + sizeof(nvtxMessageValue_t);

const StringEntry* message(const nvtxEventAttributes_t* event, uint32_t domain) {
  if (!event || event->size < kNeededSize) return find_string(kUnnamed, domain);
  switch (event->messageType) {
    case NVTX_MESSAGE_TYPE_ASCII: return ascii(event->message.ascii, domain);
    case NVTX_MESSAGE_TYPE_UNICODE: return wide(event->message.unicode, domain);
    case NVTX_MESSAGE_TYPE_REGISTERED:
      if (event->message.registered) return reinterpret_cast<const StringEntry*>(event->message.registered);
      [[fallthrough]];
    default: return find_string(kUnnamed, domain);
  }
}

// ---- the calls of NVTX

void mark_ex(const nvtxEventAttributes_t* event) { guarded([&] { mark(message(event, 0)); }); }
void mark_a(const char* text) { guarded([&] { mark(ascii(text, 0)); }); }
void mark_w(const wchar_t* text) { guarded([&] { mark(wide(text, 0)); }); }
nvtxRangeId_t start_ex(const nvtxEventAttributes_t* event) { return guarded([&] { return start_range(message(event, 0), 0); }); }
nvtxRangeId_t start_a(const char* text) { return guarded([&] { return start_range(ascii(text, 0), 0); }); }
nvtxRangeId_t start_w(const wchar_t* text) { return guarded([&] { return start_range(wide(text, 0), 0); }); }
void end(nvtxRangeId_t id) { guarded([&] { end_range(id); }); }
int push_ex(const nvtxEventAttributes_t* event) { return guarded([&] { return push_range(message(event, 0), 0); }); }
int push_a(const char* text) { return push_text(text ? std::string_view(text, strnlen(text, kMaxText)) : kUnnamed); }
int push_w(const wchar_t* text) { return guarded([&] { return push_range(wide(text, 0), 0); }); }
int pop() { return pop_range(0); }

void domain_mark(nvtxDomainHandle_t domain, const nvtxEventAttributes_t* event) {
  guarded([&] { mark(message(event, domain_id(domain))); });
}
nvtxRangeId_t domain_start(nvtxDomainHandle_t domain, const nvtxEventAttributes_t* event) {
  return guarded([&] { return start_range(message(event, domain_id(domain)), domain_id(domain)); });
}
void domain_end(nvtxDomainHandle_t, nvtxRangeId_t id) { end(id); }
int domain_push(nvtxDomainHandle_t domain, const nvtxEventAttributes_t* event) {
  bool registered = event && event->size >= kNeededSize && event->messageType == NVTX_MESSAGE_TYPE_REGISTERED && event->message.registered;
  if (registered) [[likely]] return push_range(reinterpret_cast<const StringEntry*>(event->message.registered), domain_id(domain));
  return guarded([&] { return push_range(message(event, domain_id(domain)), domain_id(domain)); });
}
int domain_pop(nvtxDomainHandle_t domain) { return pop_range(domain_id(domain)); }

template <typename Handle>
Handle handle(const StringEntry* entry) {
  return reinterpret_cast<Handle>(const_cast<StringEntry*>(entry));
}
nvtxStringHandle_t register_a(nvtxDomainHandle_t domain, const char* text) {
  return guarded([&] { return handle<nvtxStringHandle_t>(ascii(text, domain_id(domain))); });
}
nvtxStringHandle_t register_w(nvtxDomainHandle_t domain, const wchar_t* text) {
  return guarded([&] { return handle<nvtxStringHandle_t>(wide(text, domain_id(domain))); });
}
nvtxDomainHandle_t create_a(const char* name) {
  return guarded([&] { return handle<nvtxDomainHandle_t>(ascii(name, 0)); });
}
nvtxDomainHandle_t create_w(const wchar_t* name) {
  return guarded([&] { return handle<nvtxDomainHandle_t>(wide(name, 0)); });
}

// ---- attaching

struct Entry {
  NvtxCallbackModule module;
  unsigned int id;
  NvtxFunctionPointer function;
};

template <typename Function>
Entry core(NvtxCallbackIdCore id, Function* function) {
  return {NVTX_CB_MODULE_CORE, static_cast<unsigned int>(id), reinterpret_cast<NvtxFunctionPointer>(function)};
}
template <typename Function>
Entry core2(NvtxCallbackIdCore2 id, Function* function) {
  return {NVTX_CB_MODULE_CORE2, static_cast<unsigned int>(id), reinterpret_cast<NvtxFunctionPointer>(function)};
}

const Entry kEntries[] = {
    core(NVTX_CBID_CORE_MarkEx, mark_ex),
    core(NVTX_CBID_CORE_MarkA, mark_a),
    core(NVTX_CBID_CORE_MarkW, mark_w),
    core(NVTX_CBID_CORE_RangeStartEx, start_ex),
    core(NVTX_CBID_CORE_RangeStartA, start_a),
    core(NVTX_CBID_CORE_RangeStartW, start_w),
    core(NVTX_CBID_CORE_RangeEnd, end),
    core(NVTX_CBID_CORE_RangePushEx, push_ex),
    core(NVTX_CBID_CORE_RangePushA, push_a),
    core(NVTX_CBID_CORE_RangePushW, push_w),
    core(NVTX_CBID_CORE_RangePop, pop),
    core2(NVTX_CBID_CORE2_DomainMarkEx, domain_mark),
    core2(NVTX_CBID_CORE2_DomainRangeStartEx, domain_start),
    core2(NVTX_CBID_CORE2_DomainRangeEnd, domain_end),
    core2(NVTX_CBID_CORE2_DomainRangePushEx, domain_push),
    core2(NVTX_CBID_CORE2_DomainRangePop, domain_pop),
    core2(NVTX_CBID_CORE2_DomainRegisterStringA, register_a),
    core2(NVTX_CBID_CORE2_DomainRegisterStringW, register_w),
    core2(NVTX_CBID_CORE2_DomainCreateA, create_a),
    core2(NVTX_CBID_CORE2_DomainCreateW, create_w),
};

bool fill_table(const NvtxExportTableCallbacks& callbacks, NvtxCallbackModule module) {
  NvtxFunctionTable table = nullptr;
  unsigned int size = 0;
  if (!callbacks.GetModuleFunctionTable(module, &table, &size) || !table) return false;
  for (const Entry& entry : kEntries) {
    if (entry.module == module && entry.id < size && table[entry.id]) *table[entry.id] = entry.function;
  }
  return true;
}

// Of the payload extension (nvToolsExtPayload.h); older toolkits' headers lack the second.
constexpr uint16_t kPayloadModule = 2;
constexpr size_t kDomainIsEnabled = 7;

int domain_is_enabled(nvtxDomainHandle_t) { return 1; }

}  // namespace

int attach_nvtx(const void* (*get_export_table)(uint32_t)) {
  return guarded([&] {
    if (Recorder::instance().off() || !get_export_table) return 0;
    auto* callbacks = static_cast<const NvtxExportTableCallbacks*>(get_export_table(NVTX_ETID_CALLBACKS));
    if (!callbacks || callbacks->struct_size < sizeof(*callbacks)) return 0;
    // NVTX 2 before its domains has no CORE2 table.
    if (!fill_table(*callbacks, NVTX_CB_MODULE_CORE)) return 0;
    fill_table(*callbacks, NVTX_CB_MODULE_CORE2);
    Recorder::instance().nvtx_copies.fetch_add(1);
    return 1;
  });
}

int attach_nvtx_extension(void* module_info) {
  auto* info = static_cast<nvtxExtModuleInfo_t*>(module_info);
  if (!info || info->moduleId != kPayloadModule || !info->segments || Recorder::instance().off()) return 0;
  for (size_t i = 0; i < info->segmentsCount; ++i) {
    nvtxExtModuleSegment_t& segment = info->segments[i];
    if (segment.slotCount > kDomainIsEnabled) {
      segment.functionSlots[kDomainIsEnabled] = reinterpret_cast<intptr_t>(domain_is_enabled);
    }
  }
  return 1;
}

}  // namespace lamina
