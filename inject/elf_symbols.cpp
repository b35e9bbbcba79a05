#include "inject/elf_symbols.h"

#include <elf.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <tuple>
#include <utility>

#include "inject/guarded.h"

namespace lamina {
namespace {

#if defined(__x86_64__)
constexpr int kMachine = EM_X86_64;
#elif defined(__aarch64__)
constexpr int kMachine = EM_AARCH64;
#else
constexpr int kMachine = EM_NONE;
#endif
static_assert(sizeof(Elf64_Nhdr) == sizeof(Elf32_Nhdr));

constexpr const char* kDebugFolder = "/usr/lib/debug";
constexpr size_t kMaxSections = 64u << 10;
constexpr size_t kMaxSegments = 1024;
constexpr size_t kMaxSectionNames = 4u << 20;
constexpr size_t kMaxNotes = 1u << 20;
constexpr size_t kMaxBuildId = 64;
constexpr size_t kSymbolsOfARead = 4096;
constexpr uint64_t kMaxChecked = 1u << 30;  // bytes to make a checksum of
constexpr int kLowestDescriptor = 512;      // the program may rely on getting the lowest ones

// A file is read, not mapped: one that is cut short meanwhile ends a read, but would end a program that looks at the
// mapping.
class ElfFile {
 public:
  ElfFile() = default;
  ElfFile(const ElfFile&) = delete;
  ElfFile& operator=(const ElfFile&) = delete;
  ~ElfFile() { close_file(); }

  bool open(const std::string& path);
  const std::string& path() const { return path_; }
  const std::vector<Elf64_Shdr>& sections() const { return sections_; }
  const std::vector<Elf64_Phdr>& segments() const { return segments_; }

  uint64_t size() const { return size_; }
  // How many of the bytes that a header speaks of the file has.
  uint64_t available(uint64_t offset, uint64_t bytes) const {
    return offset < size_ ? std::min(bytes, size_ - offset) : 0;
  }
  size_t read_some(uint64_t offset, void* to, size_t bytes) const;  // less at the file's end
  bool read(uint64_t offset, void* to, size_t bytes) const { return read_some(offset, to, bytes) == bytes; }
  std::vector<char> read_up_to(uint64_t offset, uint64_t bytes, uint64_t limit) const;

  const Elf64_Shdr* section(uint32_t type) const;
  const Elf64_Shdr* section(std::string_view name) const;
  std::string_view name_of(const Elf64_Shdr& section) const;

 private:
  void close_file();
  bool read_headers();
  bool read_sections(const Elf64_Ehdr& header);
  void read_segments(const Elf64_Ehdr& header);

  int file_ = -1;
  uint64_t size_ = 0;
  std::string path_;
  std::vector<Elf64_Shdr> sections_;
  std::vector<Elf64_Phdr> segments_;
  std::vector<char> section_names_;  // ends with a 0
};

void ElfFile::close_file() {
  if (file_ >= 0) close(file_);
  file_ = -1;
}

bool ElfFile::open(const std::string& path) {
  close_file();
  path_ = path;
  file_ = open_to_read(path);
  struct stat status {};
  if (file_ < 0 || fstat(file_, &status) != 0 || !S_ISREG(status.st_mode)) return false;
  size_ = static_cast<uint64_t>(status.st_size);
  return read_headers();
}

size_t ElfFile::read_some(uint64_t offset, void* to, size_t bytes) const {
  size_t done = 0;
  bytes = available(offset, bytes);
  while (done < bytes) {
    ssize_t count = pread(file_, static_cast<char*>(to) + done, bytes - done, static_cast<off_t>(offset + done));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) break;
    done += static_cast<size_t>(count);
  }
  return done;
}

std::vector<char> ElfFile::read_up_to(uint64_t offset, uint64_t bytes, uint64_t limit) const {
  size_t count = available(offset, std::min(bytes, limit));
  std::vector<char> content;
  content.reserve(count + 1);  // texts get a 0 at their end
  content.resize(count);
  content.resize(read_some(offset, content.data(), content.size()));
  return content;
}

bool is_of_this_machine(const Elf64_Ehdr& header) {
  return memcmp(header.e_ident, ELFMAG, SELFMAG) == 0 && header.e_ident[EI_CLASS] == ELFCLASS64 &&
         header.e_ident[EI_DATA] == ELFDATA2LSB && header.e_machine == kMachine &&
         (header.e_type == ET_DYN || header.e_type == ET_EXEC);
}

bool ElfFile::read_headers() {
  Elf64_Ehdr header;
  sections_.clear();
  segments_.clear();
  section_names_.assign(1, '\0');
  if (!read(0, &header, sizeof(header)) || !is_of_this_machine(header)) return false;
  read_segments(header);
  return read_sections(header);
}

void ElfFile::read_segments(const Elf64_Ehdr& header) {
  if (header.e_phentsize != sizeof(Elf64_Phdr)) return;
  segments_.resize(std::min<size_t>(header.e_phnum, kMaxSegments));
  size_t bytes = read_some(header.e_phoff, segments_.data(), segments_.size() * sizeof(Elf64_Phdr));
  segments_.resize(bytes / sizeof(Elf64_Phdr));
}

// A file without sections is whole, too.
bool ElfFile::read_sections(const Elf64_Ehdr& header) {
  Elf64_Shdr first;
  if (header.e_shentsize != sizeof(first) || !read(header.e_shoff, &first, sizeof(first))) return true;
  // Numbers too large for the header stand in the first section's.
  uint64_t count = header.e_shnum ? header.e_shnum : first.sh_size;
  uint32_t names = header.e_shstrndx == SHN_XINDEX ? first.sh_link : header.e_shstrndx;
  sections_.resize(available(header.e_shoff, std::min<uint64_t>(count, kMaxSections) * sizeof(first)) / sizeof(first));
  size_t bytes = read_some(header.e_shoff, sections_.data(), sections_.size() * sizeof(first));
  sections_.resize(bytes / sizeof(first));
  if (names < sections_.size() && sections_[names].sh_type != SHT_NOBITS) {
    section_names_ = read_up_to(sections_[names].sh_offset, sections_[names].sh_size, kMaxSectionNames);
    section_names_.push_back('\0');
  }
  return true;
}

std::string_view ElfFile::name_of(const Elf64_Shdr& section) const {
  return section.sh_name < section_names_.size() ? section_names_.data() + section.sh_name : "";
}

const Elf64_Shdr* ElfFile::section(uint32_t type) const {
  auto found = std::ranges::find(sections_, type, &Elf64_Shdr::sh_type);
  return found == sections_.end() ? nullptr : &*found;
}

const Elf64_Shdr* ElfFile::section(std::string_view name) const {
  for (const Elf64_Shdr& section : sections_) {
    if (section.sh_type != SHT_NOBITS && name_of(section) == name) return &section;
  }
  return nullptr;
}

// ---- build ID

std::string in_hexadecimal(const unsigned char* bytes, size_t count) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  text.reserve(2 * count);
  for (size_t i = 0; i < count; ++i) {
    text += kDigits[bytes[i] >> 4];
    text += kDigits[bytes[i] & 15];
  }
  return text;
}

bool is_build_id(const Elf64_Nhdr& note, const char* name) {
  return note.n_type == NT_GNU_BUILD_ID && note.n_namesz == sizeof(ELF_NOTE_GNU) &&
         memcmp(name, ELF_NOTE_GNU, sizeof(ELF_NOTE_GNU)) == 0 && note.n_descsz > 0 && note.n_descsz <= kMaxBuildId;
}

// Notes follow each other; each has a header, a name and its content, in steps of `alignment`.
std::string build_id_in(const char* notes, size_t size, uint64_t alignment) {
  uint64_t mask = alignment == 8 ? 7 : 3;
  uint64_t at = 0;
  while (at < size && size - at >= sizeof(Elf64_Nhdr)) {
    Elf64_Nhdr note;
    memcpy(&note, notes + at, sizeof(note));
    uint64_t name = at + sizeof(note);
    uint64_t content = (name + note.n_namesz + mask) & ~mask;
    uint64_t end = content + note.n_descsz;
    if (end > size) break;
    if (is_build_id(note, notes + name)) {
      return in_hexadecimal(reinterpret_cast<const unsigned char*>(notes) + content, note.n_descsz);
    }
    at = (end + mask) & ~mask;
  }
  return "";
}

std::string build_id_at(const ElfFile& file, uint64_t offset, uint64_t size, uint64_t alignment) {
  std::vector<char> notes = file.read_up_to(offset, size, kMaxNotes);
  return build_id_in(notes.data(), notes.size(), alignment);
}

// In debug files the segments speak of content that is not there.
std::string build_id_of(const ElfFile& file) {
  for (const Elf64_Shdr& section : file.sections()) {
    if (section.sh_type != SHT_NOTE) continue;
    std::string id = build_id_at(file, section.sh_offset, section.sh_size, section.sh_addralign);
    if (!id.empty()) return id;
  }
  for (const Elf64_Phdr& segment : file.segments()) {
    if (segment.p_type != PT_NOTE) continue;
    std::string id = build_id_at(file, segment.p_offset, segment.p_filesz, segment.p_align);
    if (!id.empty()) return id;
  }
  return "";
}

// Whether the segment lies in memory that is mapped from the file, to be read.
bool is_loaded(const dl_phdr_info& object, const Elf64_Phdr& part) {
  for (size_t i = 0; i < object.dlpi_phnum; ++i) {
    const Elf64_Phdr& whole = object.dlpi_phdr[i];
    if (whole.p_type != PT_LOAD || !(whole.p_flags & PF_R) || part.p_vaddr < whole.p_vaddr) continue;
    uint64_t before = part.p_vaddr - whole.p_vaddr;
    if (before <= whole.p_filesz && part.p_filesz <= whole.p_filesz - before) return true;
  }
  return false;
}

std::string build_id_in_memory(const dl_phdr_info& object) {
  for (size_t i = 0; i < object.dlpi_phnum; ++i) {
    const Elf64_Phdr& segment = object.dlpi_phdr[i];
    if (segment.p_type != PT_NOTE || !is_loaded(object, segment)) continue;
    auto* notes = reinterpret_cast<const char*>(object.dlpi_addr + segment.p_vaddr);
    std::string id = build_id_in(notes, std::min<size_t>(segment.p_filesz, kMaxNotes), segment.p_align);
    if (!id.empty()) return id;
  }
  return "";
}

// ---- separate debug files

std::array<uint32_t, 256> crc_table() {
  std::array<uint32_t, 256> table;
  for (uint32_t i = 0; i < table.size(); ++i) {
    uint32_t value = i;
    for (int bit = 0; bit < 8; ++bit) value = value >> 1 ^ (value & 1 ? 0xedb88320u : 0);
    table[i] = value;
  }
  return table;
}

std::optional<uint32_t> crc_of(const ElfFile& file) {
  if (file.size() > kMaxChecked) return std::nullopt;
  static const std::array<uint32_t, 256> table = crc_table();
  std::vector<unsigned char> part(1u << 20);
  uint32_t crc = ~0u;
  for (uint64_t at = 0; at < file.size();) {
    size_t count = file.read_some(at, part.data(), part.size());
    if (count == 0) break;
    for (size_t i = 0; i < count; ++i) crc = crc >> 8 ^ table[(crc ^ part[i]) & 255];
    at += count;
  }
  return ~crc;
}

struct DebugLink {
  std::string name;
  uint32_t crc;
};

// The section holds the file's name, then after a 0 and up to 3 more the checksum.
std::optional<DebugLink> debug_link_of(const ElfFile& file) {
  const Elf64_Shdr* section = file.section(".gnu_debuglink");
  if (!section) return std::nullopt;
  std::vector<char> content = file.read_up_to(section->sh_offset, section->sh_size, PATH_MAX);
  size_t length = strnlen(content.data(), content.size());
  size_t at = (length + 4) & ~size_t{3};
  DebugLink link{{content.data(), length}, 0};
  if (content.size() < at + sizeof(link.crc) || length == 0 || link.name.find('/') != std::string::npos)
    return std::nullopt;
  memcpy(&link.crc, content.data() + at, sizeof(link.crc));
  return link;
}

std::string folder_of(const std::string& path) {
  char* real = realpath(path.c_str(), nullptr);
  std::string whole = real ? real : path;
  free(real);
  size_t slash = whole.find_last_of('/');
  return slash == std::string::npos ? "." : whole.substr(0, slash);
}

bool open_by_build_id(const std::string& id, ElfFile& debug) {
  if (id.size() < 4) return false;
  return debug.open(std::string(kDebugFolder) + "/.build-id/" + id.substr(0, 2) + "/" + id.substr(2) + ".debug") &&
         build_id_of(debug) == id;
}

bool open_by_link(const std::string& path, const DebugLink& link, const std::string& id, ElfFile& debug) {
  std::string folder = folder_of(path);
  for (const std::string& place : {folder, folder + "/.debug", kDebugFolder + folder}) {
    if (!debug.open(place + "/" + link.name)) continue;
    std::string its_id = build_id_of(debug);
    // The checksum needs all of the file read.
    if (id.empty() || its_id.empty() ? crc_of(debug) == link.crc : its_id == id) return true;
  }
  return false;
}

bool open_debug_file(const ElfFile& file, ElfFile& debug) {
  std::string id = build_id_of(file);
  if (open_by_build_id(id, debug)) return true;
  std::optional<DebugLink> link = debug_link_of(file);
  return link && open_by_link(file.path(), *link, id, debug);
}

// ---- debug information

uint64_t size_in_memory(const ElfFile& file, const Elf64_Shdr& section) {
  if (!(section.sh_flags & SHF_COMPRESSED)) return file.available(section.sh_offset, section.sh_size);
  Elf64_Chdr header;
  return file.read(section.sh_offset, &header, sizeof(header)) ? header.ch_size : 0;
}

// Compressed sections are unpacked whole; of others only what is looked at is read.
uint64_t debug_info_bytes_of(const ElfFile& file) {
  const Elf64_Shdr* info = file.section(".debug_info");
  if (!info) return 0;
  uint64_t bytes = size_in_memory(file, *info);
  for (const Elf64_Shdr& section : file.sections()) {
    std::string_view name = file.name_of(section);
    if (name.starts_with(".zdebug_")) return 0;  // GNU's compression before there was a standard
    bool adds = &section != info && (section.sh_flags & SHF_COMPRESSED) && name.starts_with(".debug_");
    if (adds && __builtin_add_overflow(bytes, size_in_memory(file, section), &bytes)) return UINT64_MAX;
  }
  return bytes;
}

bool is_function(const Elf64_Sym& symbol) {
  int type = ELF64_ST_TYPE(symbol.st_info);
  return (type == STT_FUNC || type == STT_GNU_IFUNC) && symbol.st_shndx != SHN_UNDEF && symbol.st_name != 0;
}

// From an address to the end of its section; without one, at least the address itself.
uint64_t rest_of_section(const ElfFile& file, const Elf64_Sym& symbol) {
  if (symbol.st_shndx >= file.sections().size()) return 1;
  const Elf64_Shdr& section = file.sections()[symbol.st_shndx];
  uint64_t before = symbol.st_value - section.sh_addr;
  return symbol.st_value >= section.sh_addr && before < section.sh_size ? section.sh_size - before : 1;
}

}  // namespace

// ---- symbols

class ElfSymbolReader {
 public:
  explicit ElfSymbolReader(ElfSymbols& symbols) : symbols_(symbols) {}
  void read(const std::string& path);

 private:
  void add_table(const ElfFile& file, uint32_t type);
  void add_symbols(const ElfFile& file, const Elf64_Shdr& table, bool full);
  void add(const ElfFile& file, const Elf64_Sym& symbol, bool full);
  bool read_names(const ElfFile& file, const Elf64_Shdr& table, std::vector<char>& names);

  ElfSymbols& symbols_;
  uint64_t left_ = ElfSymbols::kMaxSymbols;  // to be looked at
};

void ElfSymbolReader::read(const std::string& path) {
  ElfFile file;
  if (!file.open(path)) return;
  ElfFile debug;
  if (file.section(SHT_SYMTAB)) {
    add_table(file, SHT_SYMTAB);
  } else if (open_debug_file(file, debug)) {
    add_table(debug, SHT_SYMTAB);
  }
  add_table(file, SHT_DYNSYM);
}

bool ElfSymbolReader::read_names(const ElfFile& file, const Elf64_Shdr& table, std::vector<char>& names) {
  if (table.sh_link >= file.sections().size()) return false;
  const Elf64_Shdr& section = file.sections()[table.sh_link];
  if (section.sh_type != SHT_STRTAB || (section.sh_flags & SHF_COMPRESSED)) return false;
  if (section.sh_size > ElfSymbols::kMaxNameBytes) symbols_.incomplete_ = true;
  names = file.read_up_to(section.sh_offset, section.sh_size, ElfSymbols::kMaxNameBytes);
  names.push_back('\0');
  return true;
}

void ElfSymbolReader::add_table(const ElfFile& file, uint32_t type) {
  const Elf64_Shdr* table = file.section(type);
  bool full = type == SHT_SYMTAB;
  if (!table || table->sh_entsize != sizeof(Elf64_Sym) || (table->sh_flags & SHF_COMPRESSED)) return;
  if (read_names(file, *table, symbols_.names_[full])) add_symbols(file, *table, full);
}

void ElfSymbolReader::add_symbols(const ElfFile& file, const Elf64_Shdr& table, bool full) {
  uint64_t count = file.available(table.sh_offset, table.sh_size) / sizeof(Elf64_Sym);
  if (count > left_) symbols_.incomplete_ = true;
  count = std::min(count, left_);
  left_ -= count;
  std::vector<Elf64_Sym> part(std::min<uint64_t>(count, kSymbolsOfARead));
  for (uint64_t i = 0; i < count; i += part.size()) {
    part.resize(std::min<uint64_t>(count - i, kSymbolsOfARead));
    if (!file.read(table.sh_offset + i * sizeof(Elf64_Sym), part.data(), part.size() * sizeof(Elf64_Sym))) return;
    for (const Elf64_Sym& symbol : part) {
      if (is_function(symbol)) add(file, symbol, full);
    }
  }
}

void ElfSymbolReader::add(const ElfFile& file, const Elf64_Sym& symbol, bool full) {
  const std::vector<char>& names = symbols_.names_[full];
  if (symbol.st_name >= names.size() || names[symbol.st_name] == '\0') return;
  uint64_t size = symbol.st_size ? symbol.st_size : rest_of_section(file, symbol);
  symbols_.symbols_.push_back({.start = symbol.st_value,
                               .size = static_cast<uint32_t>(std::min<uint64_t>(size, UINT32_MAX)),
                               .name = symbol.st_name,
                               .outer = 0,
                               .full = full,
                               .sized = symbol.st_size != 0,
                               .global = ELF64_ST_BIND(symbol.st_info) != STB_LOCAL,
                               .plain = names[symbol.st_name] != '_'});
}

ElfSymbols::ElfSymbols(const std::string& path) {
  bool whole = guarded([&] {
    ElfSymbolReader(*this).read(path);
    arrange();
    return true;
  });
  if (whole) return;
  // Memory is out.
  *this = ElfSymbols();
  incomplete_ = true;
}

// By address, and the better ones last; never equal but for copies.
bool ElfSymbols::is_better(const Symbol& a, const Symbol& b) {
  auto key = [](const Symbol& s) { return std::tuple(s.start, s.full, s.sized, s.global, s.size, s.plain, ~s.name); };
  return key(a) > key(b);
}

// Those without a size reach to the next, and not out of their section.
void ElfSymbols::limit_unsized() {
  uint64_t here = UINT64_MAX;
  uint64_t next = UINT64_MAX;
  for (size_t i = symbols_.size(); i-- > 0;) {
    Symbol& symbol = symbols_[i];
    if (symbol.start != here) next = std::exchange(here, symbol.start);
    if (!symbol.sized) symbol.size = static_cast<uint32_t>(std::min<uint64_t>(symbol.size, next - symbol.start));
  }
}

// Whether find() never comes to the worse of two symbols.
bool ElfSymbols::hides(const Symbol& better, const Symbol& worse) {
  return better.start == worse.start && (better.size >= worse.size || !worse.sized);
}

// Sorts, and leaves only symbols that find() can come to. Those that reach past the start of the symbol at hand are a
// chain from `outer` on.
void ElfSymbols::arrange() {
  std::ranges::sort(symbols_, [](const Symbol& a, const Symbol& b) { return is_better(b, a); });
  limit_unsized();
  uint32_t outer = kNone;
  size_t kept = 0;
  for (Symbol symbol : symbols_) {
    while (kept > 0 && hides(symbol, symbols_[kept - 1])) outer = symbols_[--kept].outer;
    while (outer != kNone && !covers(symbols_[outer], symbol.start)) outer = symbols_[outer].outer;
    if (!symbol.sized && outer != kNone) continue;  // a label in a function written in assembly
    symbol.outer = outer;
    outer = static_cast<uint32_t>(kept);
    symbols_[kept++] = symbol;
  }
  symbols_.resize(kept);
  symbols_.shrink_to_fit();
  for (bool full : {false, true}) pack_names(names_[full], full);
}

// Leaves only the names of the symbols that are kept. A name may be another's end, and stays so: that bounds the
// result.
void ElfSymbols::pack_names(std::vector<char>& names, bool full) {
  std::vector<Symbol*> by_name;
  for (Symbol& symbol : symbols_) {
    if (symbol.full == full) by_name.push_back(&symbol);
  }
  std::ranges::sort(by_name, {}, [](const Symbol* symbol) { return symbol->name; });
  size_t end = 0;     // of the last name, before
  size_t packed = 0;  // and after
  for (Symbol* symbol : by_name) {
    const char* name = names.data() + symbol->name;
    if (symbol->name >= end) {
      size_t length = strlen(name) + 1;
      memmove(names.data() + packed, name, length);
      end = symbol->name + length;
      packed += length;
    }
    symbol->name = static_cast<uint32_t>(packed - (end - symbol->name));
  }
  names.resize(packed);
  names.shrink_to_fit();
}

std::string_view ElfSymbols::name_of(const Symbol& symbol) const {
  const char* name = names_[symbol.full].data() + symbol.name;
  std::string_view text(name, strnlen(name, std::min(kMaxName, names_[symbol.full].size() - symbol.name)));
  size_t version = text.find('@');  // as in memcpy@@GLIBC_2.14
  return version == 0 ? text : text.substr(0, version);
}

std::string_view ElfSymbols::find(uint64_t vaddr, uint64_t* start) const {
  auto after = std::ranges::upper_bound(symbols_, vaddr, {}, &Symbol::start);
  uint32_t at = after == symbols_.begin() ? kNone : static_cast<uint32_t>(after - symbols_.begin() - 1);
  for (int depth = 0; at != kNone && depth < kMaxDepth; ++depth, at = symbols_[at].outer) {
    if (!covers(symbols_[at], vaddr)) continue;
    if (start) *start = symbols_[at].start;
    return name_of(symbols_[at]);
  }
  return {};
}

size_t ElfSymbols::bytes() const {
  return symbols_.capacity() * sizeof(Symbol) + names_[false].capacity() + names_[true].capacity();
}

// ---- files

int open_to_read(const std::string& path) {
  int low = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (low < 0) return -1;
  int file = fcntl(low, F_DUPFD_CLOEXEC, kLowestDescriptor);
  if (file < 0) return low;
  close(low);
  return file;
}

std::string build_id_of_file(const std::string& path) {
  return guarded([&] {
    ElfFile file;
    return file.open(path) ? build_id_of(file) : std::string();
  });
}

std::string build_id_of(const dl_phdr_info& object) {
  return guarded([&] { return build_id_in_memory(object); });
}

std::string separate_debug_file(const std::string& path) {
  return guarded([&] {
    ElfFile file;
    ElfFile debug;
    return file.open(path) && open_debug_file(file, debug) ? debug.path() : std::string();
  });
}

uint64_t debug_info_bytes(const std::string& path) {
  return guarded([&] {
    ElfFile file;
    return file.open(path) ? debug_info_bytes_of(file) : uint64_t{0};
  });
}

}  // namespace lamina
