#include "inject/loaded_modules.h"

#include <elf.h>
#include <link.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "inject/elf_symbols.h"

namespace lamina {
namespace {

struct Range {
  uintptr_t begin = UINTPTR_MAX, end = 0;
};

Range code_of(const dl_phdr_info& info) {
  Range range;
  for (size_t i = 0; i < info.dlpi_phnum; ++i) {
    const ElfW(Phdr)& header = info.dlpi_phdr[i];
    if (header.p_type != PT_LOAD || !(header.p_flags & PF_X)) continue;
    range.begin = std::min<uintptr_t>(range.begin, info.dlpi_addr + header.p_vaddr);
    range.end = std::max<uintptr_t>(range.end, info.dlpi_addr + header.p_vaddr + header.p_memsz);
  }
  return range;
}

}  // namespace

std::string_view LoadedModules::keep(std::string_view text) {
  auto* copy = static_cast<char*>(memory_->allocate(text.size() + 1, 1));
  memcpy(copy, text.data(), text.size());
  copy[text.size()] = '\0';
  return {copy, text.size()};
}

int LoadedModules::see(dl_phdr_info* info, size_t, void* self) {
  auto& modules = *static_cast<LoadedModules*>(self);
  if (!modules.reading_) {
    modules.reading_ = info->dlpi_adds != modules.loads_ || info->dlpi_subs != modules.unloads_;
    if (!modules.reading_) return 1;
    modules.loads_ = info->dlpi_adds, modules.unloads_ = info->dlpi_subs;
    modules.before_.swap(modules.modules_);
    modules.modules_.clear();
  }
  modules.add(*info);
  return 0;
}

void LoadedModules::add(const dl_phdr_info& info) {
  Range code = code_of(info);
  if (code.begin >= code.end) return;
  char program[4096];
  std::string_view path = info.dlpi_name ? info.dlpi_name : "";
  if (path.empty() && modules_.empty()) {
    ssize_t size = readlink("/proc/self/exe", program, sizeof(program));
    if (size > 0) path = {program, static_cast<size_t>(size)};
  }
  std::string build_id = build_id_of(info);
  auto known = std::ranges::find_if(before_, [&](const Module& m) { return m.path == path && m.build_id == build_id; });
  bool is_known = known != before_.end();
  modules_.push_back({is_known ? known->path : keep(path), is_known ? known->build_id : keep(build_id), info.dlpi_addr, code.begin,
                      code.end});
}

void LoadedModules::refresh() {
  reading_ = false;
  dl_iterate_phdr(see, this);
}

const LoadedModules::Module* LoadedModules::find(uintptr_t address) {
  for (const Module& module : modules_) {
    if (address >= module.begin && address < module.end) return &module;
  }
  return nullptr;
}

}  // namespace lamina
