#include "inject/source_lines.h"

#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <type_traits>
#include <utility>
#include <vector>

#include "inject/elf_symbols.h"
#include "inject/guarded.h"
#include "inject/log.h"

// What is used of <elfutils/libdw.h> and <libelf.h>; the same since elfutils 0.126.
struct Dwarf;
struct Dwarf_CU;
struct Dwarf_Abbrev;
struct Dwarf_Line;
struct Elf;
struct Dwarf_Die {
  void* addr;
  Dwarf_CU* cu;
  Dwarf_Abbrev* abbrev;
  long padding;
};

namespace lamina {
namespace {

constexpr int kDwarfRead = 0;      // DWARF_C_READ
constexpr int kElfFileIsDone = 6;  // ELF_C_FDDONE
constexpr size_t kMaxUnits = 1u << 18;
constexpr size_t kMaxRanges = 2u << 20;
constexpr size_t kMaxWithoutAny = 4096;

}  // namespace

struct SourceLines::Library {
  Dwarf* (*begin)(int file, int command);
  int (*end)(Dwarf* dwarf);
  Elf* (*elf_of)(Dwarf* dwarf);
  int (*elf_control)(Elf* elf, int command);
  Dwarf_Die* (*unit_at)(Dwarf* dwarf, uint64_t address, Dwarf_Die* unit);  // by .debug_aranges
  int (*next_unit)(Dwarf* dwarf, uint64_t offset, uint64_t* next, size_t* header_size, uint64_t* abbreviations,
                   uint8_t* address_size, uint8_t* offset_size);
  Dwarf_Die* (*entry_at)(Dwarf* dwarf, uint64_t offset, Dwarf_Die* entry);
  ptrdiff_t (*ranges)(Dwarf_Die* entry, ptrdiff_t at, uint64_t* base, uint64_t* start, uint64_t* end);
  Dwarf_Line* (*line_at)(Dwarf_Die* unit, uint64_t address);
  const char* (*file_of)(Dwarf_Line* line, uint64_t* modified, uint64_t* length);
  int (*number_of)(Dwarf_Line* line, int* number);

  // Never closed: it may have handlers for the process's end.
  bool find(const char* name) {
    void* library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (!library) return false;
    auto look_up = [&](auto& function, const char* symbol) {
      function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(library, symbol));
      return function != nullptr;
    };
    return look_up(begin, "dwarf_begin") && look_up(end, "dwarf_end") && look_up(elf_of, "dwarf_getelf") &&
           look_up(elf_control, "elf_cntl") && look_up(unit_at, "dwarf_addrdie") &&
           look_up(next_unit, "dwarf_nextcu") && look_up(entry_at, "dwarf_offdie") && look_up(ranges, "dwarf_ranges") &&
           look_up(line_at, "dwarf_getsrc_die") && look_up(file_of, "dwarf_linesrc") &&
           look_up(number_of, "dwarf_lineno");
  }
};

// A file whose debug information is being read: in it, or in its separate debug file.
class SourceLines::File {
 public:
  File(const Library& library, std::string path, Dwarf* dwarf)
      : library_(library), path_(std::move(path)), dwarf_(dwarf) {}
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  ~File() { library_.end(dwarf_); }

  const std::string& path() const { return path_; }
  std::optional<SourcePlace> find(uint64_t vaddr);

 private:
  // The code of one compilation unit, or a part of it.
  struct Range {
    uint64_t start;
    uint64_t end;
    uint64_t unit;  // offset of its entry
  };

  bool find_unit(uint64_t vaddr, Dwarf_Die& unit);
  bool find_unit_by_ranges(uint64_t vaddr, Dwarf_Die& unit);
  void read_ranges();
  void add_ranges(uint64_t unit);

  const Library& library_;
  std::string path_;
  Dwarf* dwarf_;
  bool has_ranges_ = false;
  std::vector<Range> ranges_;  // by start
};

// clang leaves .debug_aranges out, and files may be linked of both kinds.
bool SourceLines::File::find_unit(uint64_t vaddr, Dwarf_Die& unit) {
  return library_.unit_at(dwarf_, vaddr, &unit) || find_unit_by_ranges(vaddr, unit);
}

bool SourceLines::File::find_unit_by_ranges(uint64_t vaddr, Dwarf_Die& unit) {
  if (!std::exchange(has_ranges_, true)) read_ranges();
  auto after = std::ranges::upper_bound(ranges_, vaddr, {}, &Range::start);
  if (after == ranges_.begin() || vaddr >= after[-1].end) return false;
  return library_.entry_at(dwarf_, after[-1].unit, &unit) != nullptr;
}

void SourceLines::File::read_ranges() {
  uint64_t next = 0;
  size_t header_size = 0;
  uint64_t abbreviations = 0;
  uint8_t address_size = 0;
  uint8_t offset_size = 0;
  size_t units = 0;
  for (uint64_t at = 0; units < kMaxUnits && ranges_.size() < kMaxRanges; at = next, ++units) {
    if (library_.next_unit(dwarf_, at, &next, &header_size, &abbreviations, &address_size, &offset_size) != 0) break;
    add_ranges(at + header_size);
    if (next <= at) break;
  }
  std::ranges::sort(ranges_, {}, &Range::start);
}

// Functions that the linker has left out stay as ranges at 0 and 1.
void SourceLines::File::add_ranges(uint64_t unit) {
  Dwarf_Die entry{};
  if (!library_.entry_at(dwarf_, unit, &entry)) return;
  uint64_t base = 0;
  uint64_t start = 0;
  uint64_t end = 0;
  ptrdiff_t at = 0;
  while (ranges_.size() < kMaxRanges && (at = library_.ranges(&entry, at, &base, &start, &end)) > 0) {
    if (start > 1 && start < end) ranges_.push_back({start, end, unit});
  }
}

std::optional<SourcePlace> SourceLines::File::find(uint64_t vaddr) {
  Dwarf_Die unit{};
  if (!find_unit(vaddr, unit)) return std::nullopt;
  Dwarf_Line* line = library_.line_at(&unit, vaddr);
  const char* file = line ? library_.file_of(line, nullptr, nullptr) : nullptr;
  int number = 0;
  // Line 0 is what the compiler made of no line; "???" is libdw's for a file that is not in the table.
  if (!file || library_.number_of(line, &number) != 0 || number <= 0 || !strcmp(file, "???")) return std::nullopt;
  return SourcePlace{file, number};
}

SourceLines::SourceLines(const char* library) {
  library_ = guarded([&] {
    auto found = std::make_unique<Library>();
    if (!found->find(library)) found.reset();
    return found;
  });
  if (!library_) log_debug("no source lines: %s was not found", library);
}

SourceLines::~SourceLines() = default;

std::unique_ptr<SourceLines::File> SourceLines::open(const std::string& path) {
  auto is_readable = [](const std::string& name) {
    uint64_t bytes = name.empty() ? 0 : debug_info_bytes(name);
    return bytes > 0 && bytes <= kMaxDebugInfo;
  };
  std::string with_lines = debug_info_bytes(path) > 0 ? path : separate_debug_file(path);
  if (!is_readable(with_lines)) return nullptr;
  int descriptor = open_to_read(with_lines);
  if (descriptor < 0) return nullptr;
  Dwarf* dwarf = library_->begin(descriptor, kDwarfRead);
  // The file is mapped by now. Its descriptor could be closed by the program, and then be another file's.
  if (dwarf) library_->elf_control(library_->elf_of(dwarf), kElfFileIsDone);
  close(descriptor);
  return dwarf ? std::make_unique<File>(*library_, path, dwarf) : nullptr;
}

SourceLines::File* SourceLines::file_of(const std::string& path) {
  auto known = std::ranges::find(files_, path, [](const auto& file) -> const std::string& { return file->path(); });
  if (known != files_.end()) {
    files_.splice(files_.begin(), files_, known);
    return files_.front().get();
  }
  if (without_any_.contains(path)) return nullptr;
  std::unique_ptr<File> file = open(path);
  if (!file) {
    if (without_any_.size() < kMaxWithoutAny) without_any_.insert(path);
    return nullptr;
  }
  files_.push_front(std::move(file));
  if (files_.size() > kMaxOpen) files_.pop_back();
  return files_.front().get();
}

std::optional<SourcePlace> SourceLines::find(const std::string& path, uint64_t vaddr) {
  if (!available()) return std::nullopt;
  return guarded([&]() -> std::optional<SourcePlace> {
    File* file = file_of(path);
    return file ? file->find(vaddr) : std::nullopt;
  });
}

}  // namespace lamina
