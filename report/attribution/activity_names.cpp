#include "report/attribution/activity_names.h"

#include <cxxabi.h>
#include <cstdlib>
#include <memory>

#include "report/format.h"

namespace lamina {
namespace {

// CUpti_ActivityMemcpyKind and CUpti_ActivityMemoryKind, by value.
constexpr const char* kCopies[] = {"?", "HtoD", "DtoH", "HtoA", "AtoH", "AtoA", "AtoD", "DtoA", "DtoD", "HtoH", "PtoP"};
constexpr const char* kMemories[] = {"Unknown", "Pageable", "Pinned", "Device", "Array", "Managed", "Device Static", "Managed Static"};

template <size_t N>
const char* at(const char* const (&names)[N], uint32_t value) {
  return value < N ? names[value] : names[0];
}

struct Free {
  void operator()(char* text) const { free(text); }
};

}  // namespace

std::string kernel_name(std::string_view mangled) {
  std::string text(mangled);
  int status = 0;
  std::unique_ptr<char, Free> demangled(abi::__cxa_demangle(text.c_str(), nullptr, nullptr, &status));
  bool is_mangled = mangled.starts_with("_Z");  // else `f` would become `float`
  return is_mangled && status == 0 && demangled ? std::string(demangled.get()) : text;
}

std::string memcpy_name(uint8_t copy_kind, uint8_t source_kind, uint8_t destination_kind) {
  return fmt::format("Memcpy {} ({} -> {})", at(kCopies, copy_kind), at(kMemories, source_kind), at(kMemories, destination_kind));
}

std::string memset_name(uint32_t memory_kind) { return fmt::format("Memset ({})", at(kMemories, memory_kind)); }

}  // namespace lamina
