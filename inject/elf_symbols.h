// The functions of an ELF file, by address, and what else a mapped file tells of itself. Nothing here trusts the file:
// what does not fit is as if it were not there.
#pragma once

#include <link.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace lamina {

// Only of this machine's own kind of file, and only of those that can be mapped: programs and shared libraries.
class ElfSymbols {
 public:
  static constexpr uint64_t kMaxSymbols = 4u << 20;
  static constexpr uint64_t kMaxNameBytes = 512u << 20;  // of one table's names
  static constexpr size_t kMaxName = 64u << 10;          // longer names are cut

  ElfSymbols() = default;
  // Reads .dynsym of the file, and .symtab of it or of its separate debug file. Nothing of the files stays open or
  // mapped.
  explicit ElfSymbols(const std::string& path);

  // The mangled name, without version, of the function that covers the address, and where it begins; empty if there is
  // none. Of functions in each other it is the innermost; one without a size reaches to the next. The text lives as
  // long as this.
  std::string_view find(uint64_t vaddr, uint64_t* start = nullptr) const;

  size_t size() const { return symbols_.size(); }
  bool incomplete() const { return incomplete_; }  // there was more in the file than the limits allow
  size_t bytes() const;                            // of memory, about

 private:
  friend class ElfSymbolReader;

  struct Symbol {
    uint64_t start;
    uint32_t size;
    uint32_t name;   // in its table's names
    uint32_t outer;  // the nearest one before that may reach past this start

    // Between symbols of one address these decide, in their order; before the last, the size.
    bool full : 1;  // of .symtab
    bool sized : 1;
    bool global : 1;  // or weak
    bool plain : 1;   // begins with no underscore, as write does, not __write
  };

  static constexpr uint32_t kNone = UINT32_MAX;
  static constexpr int kMaxDepth = 64;  // of functions in each other; files of no ill will have one or two

  static bool is_better(const Symbol& a, const Symbol& b);
  static bool hides(const Symbol& better, const Symbol& worse);
  static bool covers(const Symbol& symbol, uint64_t vaddr) { return vaddr - symbol.start < symbol.size; }
  void arrange();
  void limit_unsized();
  void pack_names(std::vector<char>& names, bool full);
  std::string_view name_of(const Symbol& symbol) const;

  std::vector<Symbol> symbols_;  // by start
  std::vector<char> names_[2];   // of .dynsym and of .symtab
  bool incomplete_ = false;
};

// A descriptor, out of the program's way; negative if there is no such file. Never waits, whatever lies at the path.
int open_to_read(const std::string& path);

// The build ID in hexadecimal; empty if there is none.
std::string build_id_of_file(const std::string& path);
// Of an object in memory. It must stay there: call it from within the callback of dl_iterate_phdr.
std::string build_id_of(const dl_phdr_info& object);

// Where the symbols and the debug information of a stripped file are; empty if they are not on this machine. Looked for
// under /usr/lib/debug by build ID, then where .gnu_debuglink says.
std::string separate_debug_file(const std::string& path);

// How much memory the debug information of a file can take: .debug_info, and all that is compressed. 0 if there is
// none, or if it is compressed as GNU did before there was a standard.
uint64_t debug_info_bytes(const std::string& path);

}  // namespace lamina
