#include "report/names/described_name.h"

#include <algorithm>

namespace lamina {

void DescribedName::add(std::string detail) {
  if (!detail.empty() && std::ranges::find(details, detail) == details.end()) details.push_back(std::move(detail));
}

std::string DescribedName::text() const {
  std::string list;
  for (const std::string& detail : details) list += (list.empty() ? "" : ", ") + detail;
  return list.empty() ? base : base + "(" + list + ")";
}

std::string_view without_kernel(std::string_view name) {
  for (std::string_view ending : {"_kernel_impl", "_kernel", "Kernel", "_impl"}) {
    if (name.size() > ending.size() && name.ends_with(ending)) return name.substr(0, name.size() - ending.size());
  }
  return name;
}

}  // namespace lamina
