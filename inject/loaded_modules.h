// The ELF files that are mapped into the process.
#pragma once

#include <link.h>

#include <cstdint>
#include <string_view>
#include <vector>

#include "inject/callback_memory.h"

namespace lamina {

// Not locked: it is used under the mutex of its owner.
class LoadedModules {
 public:
  struct Module {
    std::string_view path;      // as the loader has it, the program's own absolute; valid for ever
    std::string_view build_id;  // hexadecimal; empty if it has none
    uintptr_t bias;             // address of its vaddr 0
    uintptr_t begin, end;       // of its code
  };

  explicit LoadedModules(std::pmr::memory_resource* memory) : memory_(memory), modules_(memory) {}

  // The one that an address lies in, as of the last refresh(); null if in none.
  const Module* find(uintptr_t address);
  // How many libraries have gone.
  uint64_t unloads() const { return unloads_; }
  // Looks again if libraries have come or gone.
  void refresh();

 private:
  static int see(dl_phdr_info* info, size_t size, void* self);
  void add(const dl_phdr_info& info);
  std::string_view keep(std::string_view text);

  std::pmr::memory_resource* memory_;
  std::pmr::vector<Module> modules_;
  std::pmr::vector<Module> before_{memory_};  // what a refresh knew, so that texts are kept once
  uint64_t loads_ = 0;
  uint64_t unloads_ = 0;
  bool reading_ = false;
};

}  // namespace lamina
