#include "report/names/kernel_groups.h"

namespace lamina {

std::string_view KernelGroups::group_of(std::string_view name) const {
  return name.starts_with("Memcpy ") || name.starts_with("Memset ") ? "memory" : "other";
}

}  // namespace lamina
