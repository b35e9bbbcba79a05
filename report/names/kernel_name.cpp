#include "report/names/kernel_name.h"

namespace lamina {

std::string short_kernel_name(std::string_view name) { return std::string(name); }

}  // namespace lamina
