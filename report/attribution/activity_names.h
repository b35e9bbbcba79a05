// The names that activities have in every table.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace lamina {

// `void rms_norm<float>(float*)` for a mangled name; a name that is none is given back.
std::string kernel_name(std::string_view mangled);

// `Memcpy HtoD (Pinned -> Device)`, from CUpti_ActivityMemcpyKind and CUpti_ActivityMemoryKind.
std::string memcpy_name(uint8_t copy_kind, uint8_t source_kind, uint8_t destination_kind);

// `Memset (Device)`, from CUpti_ActivityMemoryKind.
std::string memset_name(uint32_t memory_kind);

}  // namespace lamina
