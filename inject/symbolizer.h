// What stands at a place of an ELF file.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <string>
#include <utility>

#include "inject/elf_symbols.h"
#include "inject/source_lines.h"

namespace lamina {

class Symbolizer {
 public:
  struct Symbol {
    std::string function;  // mangled; empty if not known
    std::string file;      // empty without debug information
    uint32_t line = 0;
  };
  Symbol find(const std::string& path, uint64_t vaddr);

 private:
  static constexpr size_t kKeptFiles = 8;  // tables of symbols may be large

  const ElfSymbols& symbols_of(const std::string& path);

  std::list<std::pair<std::string, std::unique_ptr<ElfSymbols>>> files_;  // last used first
  SourceLines lines_;
};

}  // namespace lamina
