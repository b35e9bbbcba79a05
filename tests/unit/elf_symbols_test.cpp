// Functions and build IDs of ELF files: small ones made by hand, those of this process, and damaged ones.
#include "inject/elf_symbols.h"

#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>

// Not in .dynsym of this program.
extern "C" __attribute__((noinline, used)) int lamina_elf_test_probe(int value) { return value * 3 + 1; }

namespace lamina {
namespace {

constexpr uint64_t kText = 0x1000;  // where the code of the made files begins
constexpr uint64_t kTextSize = 0x1000;

struct TestSymbol {
  std::string name;
  uint64_t value;
  uint64_t size;
  int bind = STB_GLOBAL;
  int type = STT_FUNC;
  uint16_t section = 1;
};

// A shared library of nothing but symbols and notes.
class TestElf {
 public:
  enum Section { kNull, kCode, kSymtab, kStrtab, kDynsym, kDynstr, kNote, kLink, kNames, kSections };

  std::vector<TestSymbol> symtab;
  std::vector<TestSymbol> dynsym;
  std::string build_id = "\x12\xab\xcd\xef";
  std::string debug_link;
  uint32_t debug_link_crc = 0;
  uint32_t note_alignment = 4;

  std::string bytes();
  // In the bytes, which bytes() gave before.
  static Elf64_Ehdr& header(std::string& file) { return *reinterpret_cast<Elf64_Ehdr*>(file.data()); }
  static Elf64_Shdr& section(std::string& file, Section which) {
    return reinterpret_cast<Elf64_Shdr*>(file.data() + header(file).e_shoff)[which];
  }

 private:
  void add(Section which, const char* name, uint32_t type, const std::string& content, uint32_t link = 0);
  void add_symbols(Section which, const char* name, uint32_t type, const std::vector<TestSymbol>& symbols);
  std::string note() const;
  std::string link() const;

  std::string file_;
  std::string names_;
  std::array<Elf64_Shdr, kSections> sections_;
};

template <typename Object>
void append(std::string& to, const Object& object) {
  to.append(reinterpret_cast<const char*>(&object), sizeof(object));
}

void TestElf::add(Section which, const char* name, uint32_t type, const std::string& content, uint32_t link) {
  file_.resize((file_.size() + 7) & ~size_t{7});
  Elf64_Shdr& section = sections_[which];
  section.sh_name = static_cast<uint32_t>(names_.size());
  section.sh_type = type;
  section.sh_offset = file_.size();
  section.sh_size = content.size();
  section.sh_link = link;
  names_ += std::string(name) + '\0';
  file_ += content;
}

void TestElf::add_symbols(Section which, const char* name, uint32_t type, const std::vector<TestSymbol>& symbols) {
  std::string table(sizeof(Elf64_Sym), '\0');
  std::string names(1, '\0');
  for (const TestSymbol& symbol : symbols) {
    Elf64_Sym entry{};
    entry.st_name = static_cast<uint32_t>(names.size());
    entry.st_info = static_cast<unsigned char>(ELF64_ST_INFO(symbol.bind, symbol.type));
    entry.st_shndx = symbol.section;
    entry.st_value = symbol.value;
    entry.st_size = symbol.size;
    append(table, entry);
    names += symbol.name + '\0';
  }
  add(which, name, type, table, which + 1u);
  sections_[which].sh_entsize = sizeof(Elf64_Sym);
  add(static_cast<Section>(which + 1), type == SHT_SYMTAB ? ".strtab" : ".dynstr", SHT_STRTAB, names);
}

std::string TestElf::note() const {
  std::string note;
  append(note, Elf64_Nhdr{2, 1, 7});  // another, with padding
  note += std::string("X\0\0\0q\0\0\0", 8);
  if (note_alignment == 8) note += std::string(4, '\0');
  append(note, Elf64_Nhdr{4, static_cast<uint32_t>(build_id.size()), NT_GNU_BUILD_ID});
  return note + std::string("GNU\0", 4) + build_id;
}

std::string TestElf::link() const {
  std::string link = debug_link + '\0';
  link.resize((link.size() + 3) & ~size_t{3});
  append(link, debug_link_crc);
  return link;
}

std::string TestElf::bytes() {
  file_.assign(sizeof(Elf64_Ehdr) + sizeof(Elf64_Phdr), '\0');
  names_.assign(1, '\0');
  sections_ = {};
  add(kCode, ".text", SHT_NOBITS, "");
  sections_[kCode].sh_addr = kText;
  sections_[kCode].sh_size = kTextSize;
  if (!symtab.empty()) add_symbols(kSymtab, ".symtab", SHT_SYMTAB, symtab);
  add_symbols(kDynsym, ".dynsym", SHT_DYNSYM, dynsym);
  if (!build_id.empty()) add(kNote, ".note.gnu.build-id", SHT_NOTE, note());
  sections_[kNote].sh_addralign = note_alignment;
  if (!debug_link.empty()) add(kLink, ".gnu_debuglink", SHT_PROGBITS, link());
  add(kNames, ".shstrtab", SHT_STRTAB, names_ + ".shstrtab" + '\0');

  Elf64_Ehdr header{};
  memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_ident[EI_DATA] = ELFDATA2LSB;
  header.e_ident[EI_VERSION] = EV_CURRENT;
  header.e_type = ET_DYN;
#if defined(__aarch64__)
  header.e_machine = EM_AARCH64;
#else
  header.e_machine = EM_X86_64;
#endif
  header.e_phoff = sizeof(header);
  header.e_phentsize = sizeof(Elf64_Phdr);
  header.e_phnum = 1;
  header.e_shoff = (file_.size() + 7) & ~size_t{7};
  header.e_shentsize = sizeof(Elf64_Shdr);
  header.e_shnum = kSections;
  header.e_shstrndx = kNames;
  Elf64_Phdr segment{};
  segment.p_type = PT_NOTE;
  segment.p_offset = sections_[kNote].sh_offset;
  segment.p_filesz = sections_[kNote].sh_size;
  segment.p_align = note_alignment;
  memcpy(file_.data(), &header, sizeof(header));
  memcpy(file_.data() + sizeof(header), &segment, sizeof(segment));
  file_.resize(header.e_shoff);
  for (const Elf64_Shdr& section : sections_) append(file_, section);
  return file_;
}

class ElfSymbolsTest : public testing::Test {
 protected:
  ElfSymbolsTest() {
    std::string name = testing::TempDir() + "/lamina_elf_test.XXXXXX";
    folder_ = mkdtemp(name.data());
  }
  ~ElfSymbolsTest() override { std::filesystem::remove_all(folder_); }

  std::string write(const std::string& name, const std::string& bytes) const {
    std::string path = folder_ + "/" + name;
    std::ofstream(path, std::ios::binary) << bytes;
    return path;
  }
  ElfSymbols read(const std::string& bytes) const { return ElfSymbols(write("file", bytes)); }
  ElfSymbols read(std::vector<TestSymbol> symtab, std::vector<TestSymbol> dynsym = {}) const {
    TestElf elf;
    elf.symtab = std::move(symtab);
    elf.dynsym = std::move(dynsym);
    return read(elf.bytes());
  }

  std::string folder_;
};

// ---- which function it is

TEST_F(ElfSymbolsTest, FunctionCoversItsSize) {
  ElfSymbols symbols = read({{"b", 0x1100, 0x20}, {"a", 0x1010, 0x10}});
  uint64_t start = 0;
  EXPECT_EQ(symbols.find(0x100f), "");
  EXPECT_EQ(symbols.find(0x1010, &start), "a");
  EXPECT_EQ(symbols.find(0x101f, &start), "a");
  EXPECT_EQ(start, 0x1010);
  EXPECT_EQ(symbols.find(0x1020), "");
  EXPECT_EQ(symbols.find(0x111f, &start), "b");
  EXPECT_EQ(start, 0x1100);
  EXPECT_EQ(symbols.find(0x1120), "");
  EXPECT_EQ(symbols.find(0), "");
  EXPECT_EQ(symbols.find(UINT64_MAX), "");
  EXPECT_EQ(symbols.size(), 2);
  EXPECT_FALSE(symbols.incomplete());
}

TEST_F(ElfSymbolsTest, WithoutSizeItReachesToTheNextOrTheEndOfItsSection) {
  ElfSymbols symbols = read({{"a", 0x1000, 0},
                             {"b", 0x1100, 0x10},
                             {"c", 0x1800, 0},
                             {"absolute", 0x9000, 0, STB_GLOBAL, STT_FUNC, SHN_ABS}});
  EXPECT_EQ(symbols.find(0x10ff), "a");
  EXPECT_EQ(symbols.find(0x1110), "");
  EXPECT_EQ(symbols.find(0x1fff), "c");
  EXPECT_EQ(symbols.find(0x2000), "");
  EXPECT_EQ(symbols.find(0x9000), "absolute");
  EXPECT_EQ(symbols.find(0x9001), "");
}

TEST_F(ElfSymbolsTest, OfOneAddressTheGlobalThenTheLongestThenThePlainNameIsTaken) {
  ElfSymbols symbols = read({{"local", 0x1000, 0x40, STB_LOCAL},
                             {"short", 0x1000, 0x10},
                             {"weak", 0x1000, 0x20, STB_WEAK},
                             {"unsized", 0x1000, 0},
                             {"__write", 0x1100, 0x10},
                             {"write", 0x1100, 0x10},
                             {"another", 0x1100, 0x10}});
  EXPECT_EQ(symbols.find(0x1000), "weak");
  EXPECT_EQ(symbols.find(0x101f), "weak");
  EXPECT_EQ(symbols.find(0x1030), "local");  // which alone reaches there
  EXPECT_EQ(symbols.find(0x1040), "");
  EXPECT_EQ(symbols.find(0x1100), "write");
}

TEST_F(ElfSymbolsTest, InnermostFunctionIsTakenAndLabelsAreNot) {
  ElfSymbols symbols = read({{"outer", 0x1000, 0x100},
                             {"inner", 0x1010, 0x10},
                             {"label", 0x1040, 0, STB_LOCAL},
                             {"innermost", 0x1018, 4},
                             {"overlapping", 0x10f0, 0x20}});
  EXPECT_EQ(symbols.find(0x1008), "outer");
  EXPECT_EQ(symbols.find(0x1010), "inner");
  EXPECT_EQ(symbols.find(0x101b), "innermost");
  EXPECT_EQ(symbols.find(0x101c), "inner");
  EXPECT_EQ(symbols.find(0x1020), "outer");
  EXPECT_EQ(symbols.find(0x1040), "outer");
  EXPECT_EQ(symbols.find(0x10ff), "overlapping");
  EXPECT_EQ(symbols.find(0x110f), "overlapping");
}

TEST_F(ElfSymbolsTest, BothTablesAreReadAndSymtabComesFirst) {
  ElfSymbols symbols =
      read({{"local_alias", 0x1000, 0x10, STB_LOCAL}}, {{"exported", 0x1000, 0x10}, {"other", 0x1100, 0x10}});
  EXPECT_EQ(symbols.find(0x1000), "local_alias");
  EXPECT_EQ(symbols.find(0x1100), "other");
  EXPECT_EQ(read({}, {{"exported", 0x1000, 0x10}}).find(0x1000), "exported");
}

TEST_F(ElfSymbolsTest, OnlyDefinedFunctionsAreTaken) {
  ElfSymbols symbols = read({{"data", 0x1000, 0x10, STB_GLOBAL, STT_OBJECT},
                             {"import", 0x1100, 0x10, STB_GLOBAL, STT_FUNC, SHN_UNDEF},
                             {"", 0x1200, 0x10},
                             {"chosen", 0x1300, 0x10, STB_GLOBAL, STT_GNU_IFUNC}});
  EXPECT_EQ(symbols.size(), 1);
  EXPECT_EQ(symbols.find(0x1305), "chosen");
}

TEST_F(ElfSymbolsTest, VersionsAreCutOff) {
  ElfSymbols symbols = read({{"memcpy@@GLIBC_2.14", 0x1000, 0x10}, {"old@GLIBC_2.2.5", 0x1100, 0x10}});
  EXPECT_EQ(symbols.find(0x1000), "memcpy");
  EXPECT_EQ(symbols.find(0x1100), "old");
}

TEST_F(ElfSymbolsTest, NamesThatAreEndsOfOthersStayWhole) {
  std::string file = [&] {
    TestElf elf;
    elf.symtab = {{"unused", 0, 0, STB_GLOBAL, STT_OBJECT},
                  {"_outer_name", 0x1000, 0x10},
                  {"x", 0x1100, 0x10},
                  {"last", 0x1200, 0x10}};
    return elf.bytes();
  }();
  auto* symbols = reinterpret_cast<Elf64_Sym*>(file.data() + TestElf::section(file, TestElf::kSymtab).sh_offset);
  symbols[3].st_name = symbols[2].st_name + 7;
  ElfSymbols read_back = read(file);
  EXPECT_EQ(read_back.find(0x1000), "_outer_name");
  EXPECT_EQ(read_back.find(0x1100), "name");
  EXPECT_EQ(read_back.find(0x1200), "last");
}

TEST_F(ElfSymbolsTest, NamesOfAnyLengthAreBounded) {
  std::string name(ElfSymbols::kMaxName + 1000, 'n');
  EXPECT_EQ(read({{name, 0x1000, 0x10}}).find(0x1000).size(), ElfSymbols::kMaxName);
}

// ---- limits

TEST_F(ElfSymbolsTest, OfTooManySymbolsTheFirstAreTaken) {
  TestElf elf;
  elf.symtab = {{"first", 0x1000, 0x10}, {"second", 0x1100, 0x10}};
  std::string file = elf.bytes();
  Elf64_Shdr& table = TestElf::section(file, TestElf::kSymtab);
  std::string symbols = file.substr(table.sh_offset, table.sh_size);
  table.sh_offset = (file.size() + 7) & ~size_t{7};
  table.sh_size = (ElfSymbols::kMaxSymbols + 1) * sizeof(Elf64_Sym);
  uint64_t end = table.sh_offset + table.sh_size;
  uint64_t offset = table.sh_offset;
  std::string path = write("file", file);
  // What is not written reads as nothing: no functions.
  int descriptor = open(path.c_str(), O_WRONLY);
  ASSERT_EQ(ftruncate(descriptor, static_cast<off_t>(end)), 0);
  constexpr size_t kOne = sizeof(Elf64_Sym);
  ASSERT_EQ(pwrite(descriptor, symbols.data() + kOne, kOne, static_cast<off_t>(offset + kOne)),
            static_cast<ssize_t>(kOne));
  ASSERT_EQ(pwrite(descriptor, symbols.data() + 2 * kOne, kOne, static_cast<off_t>(end - kOne)),
            static_cast<ssize_t>(kOne));
  close(descriptor);
  ElfSymbols read_back(path);
  EXPECT_TRUE(read_back.incomplete());
  EXPECT_EQ(read_back.find(0x1000), "first");
  EXPECT_EQ(read_back.find(0x1100), "");
}

TEST_F(ElfSymbolsTest, FunctionsInEachOtherWithoutEndCostNoTime) {
  std::vector<TestSymbol> symbols;
  for (uint64_t i = 0; i < 20000; ++i) symbols.push_back({"f", kText + i, 50000 - 2 * i});
  ElfSymbols read_back = read(symbols);
  for (uint64_t at = kText + 20000; at < kText + 50000; ++at) read_back.find(at);
  EXPECT_EQ(read_back.find(kText + 20000), "f");
  EXPECT_EQ(read_back.find(kText + 49999), "");  // too far out
}

// ---- what is no file for it

TEST_F(ElfSymbolsTest, ForeignFilesHaveNothing) {
  TestElf elf;
  elf.symtab = {{"a", 0x1000, 0x10}};
  auto with = [&](auto change) {
    std::string file = elf.bytes();
    change(TestElf::header(file));
    std::string path = write("file", file);
    EXPECT_EQ(build_id_of_file(path), "");
    return ElfSymbols(path).size();
  };
  EXPECT_EQ(with([](Elf64_Ehdr& header) { header.e_ident[EI_CLASS] = ELFCLASS32; }), 0);
  EXPECT_EQ(with([](Elf64_Ehdr& header) { header.e_ident[EI_DATA] = ELFDATA2MSB; }), 0);
  EXPECT_EQ(with([](Elf64_Ehdr& header) { header.e_machine = EM_RISCV; }), 0);
  EXPECT_EQ(with([](Elf64_Ehdr& header) { header.e_type = ET_REL; }), 0);
  EXPECT_EQ(with([](Elf64_Ehdr& header) { header.e_type = ET_CORE; }), 0);
  EXPECT_EQ(with([](Elf64_Ehdr& header) { header.e_ident[0] = 'E'; }), 0);
}

TEST_F(ElfSymbolsTest, WhatIsNoRegularFileHasNothingAndDoesNotWait) {
  std::string fifo = folder_ + "/fifo";
  ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
  for (const std::string& path : {std::string(), std::string("[vdso]"), folder_, fifo, folder_ + "/none",
                                  std::string("/dev/zero"), write("empty", ""), write("text", "#!/bin/sh\n")}) {
    EXPECT_EQ(ElfSymbols(path).size(), 0) << path;
    EXPECT_EQ(build_id_of_file(path), "") << path;
    EXPECT_EQ(separate_debug_file(path), "") << path;
    EXPECT_EQ(debug_info_bytes(path), 0) << path;
  }
}

TEST_F(ElfSymbolsTest, HeadersThatPointElsewhereGiveWhatIsLeft) {
  TestElf elf;
  elf.symtab = {{"a", 0x1000, 0x10}};
  elf.dynsym = {{"b", 0x1100, 0x10}};
  auto with = [&](auto change) {
    std::string file = elf.bytes();
    change(file);
    ElfSymbols symbols = read(file);
    return std::string(symbols.find(0x1000)) + std::string(symbols.find(0x1100));
  };
  auto section = [](std::string& file, TestElf::Section which) -> Elf64_Shdr& { return TestElf::section(file, which); };
  EXPECT_EQ(with([](std::string&) {}), "ab");
  EXPECT_EQ(with([&](std::string& file) { section(file, TestElf::kSymtab).sh_link = 1000; }), "b");
  EXPECT_EQ(with([&](std::string& file) { section(file, TestElf::kSymtab).sh_link = TestElf::kSymtab; }), "b");
  EXPECT_EQ(with([&](std::string& file) { section(file, TestElf::kSymtab).sh_entsize = 0; }), "b");
  EXPECT_EQ(with([&](std::string& file) { section(file, TestElf::kSymtab).sh_offset = UINT64_MAX - 8; }), "b");
  EXPECT_EQ(with([&](std::string& file) { section(file, TestElf::kSymtab).sh_offset = INT64_MAX; }), "b");
  EXPECT_EQ(with([&](std::string& file) { section(file, TestElf::kSymtab).sh_size = 1; }), "b");
  EXPECT_EQ(with([&](std::string& file) { section(file, TestElf::kDynstr).sh_offset = UINT64_MAX; }), "a");
  EXPECT_EQ(with([&](std::string& file) { section(file, TestElf::kDynstr).sh_size = 0; }), "a");
  EXPECT_EQ(with([&](std::string& file) { section(file, TestElf::kDynstr).sh_size = UINT64_MAX; }), "ab");
  EXPECT_EQ(with([](std::string& file) { TestElf::header(file).e_shoff = UINT64_MAX - 64; }), "");
  EXPECT_EQ(with([](std::string& file) { TestElf::header(file).e_shentsize = 1; }), "");
  EXPECT_EQ(with([](std::string& file) { TestElf::header(file).e_shnum = 0xffff; }), "ab");
  EXPECT_EQ(with([](std::string& file) { TestElf::header(file).e_shstrndx = 0xfff0; }), "ab");
  // The number of sections in the first of them, as for more than 65535.
  EXPECT_EQ(with([&](std::string& file) {
              TestElf::header(file).e_shnum = 0;
              section(file, TestElf::kNull).sh_size = UINT64_MAX;
            }),
            "ab");
}

// ---- build ID

TEST_F(ElfSymbolsTest, BuildIdIsFoundAmongNotesOfEitherAlignment) {
  TestElf elf;
  elf.build_id = std::string("\x01\xab\x00\xff", 4);
  EXPECT_EQ(build_id_of_file(write("file", elf.bytes())), "01ab00ff");
  elf.note_alignment = 8;
  EXPECT_EQ(build_id_of_file(write("file", elf.bytes())), "01ab00ff");
  std::string without_sections = elf.bytes();
  TestElf::header(without_sections).e_shoff = 0;
  EXPECT_EQ(build_id_of_file(write("file", without_sections)), "01ab00ff");
  elf.build_id = std::string(1000, 'x');
  EXPECT_EQ(build_id_of_file(write("file", elf.bytes())), "");
  elf.build_id.clear();
  EXPECT_EQ(build_id_of_file(write("file", elf.bytes())), "");
}

TEST(BuildId, OfMappedObjectsIsThatOfTheirFiles) {
  int compared = 0;
  auto compare = [](dl_phdr_info* info, size_t, void* count) {
    std::string path = *info->dlpi_name ? info->dlpi_name : "/proc/self/exe";
    if (access(path.c_str(), R_OK) == 0) {
      EXPECT_EQ(build_id_of(*info), build_id_of_file(path)) << path;
      *static_cast<int*>(count) += build_id_of(*info).empty() ? 0 : 1;
    }
    return 0;
  };
  dl_iterate_phdr(compare, &compared);
  EXPECT_GT(compared, 0);
}

TEST(BuildId, NotesOutsideOfTheObjectAreNotReadInMemory) {
  Elf64_Phdr segments[2] = {};
  segments[0].p_type = PT_LOAD;
  segments[0].p_flags = PF_R;
  segments[0].p_vaddr = 0x1000;
  segments[0].p_filesz = 0x1000;
  segments[1].p_type = PT_NOTE;
  dl_phdr_info info{};
  info.dlpi_phdr = segments;
  info.dlpi_phnum = 2;
  for (auto [at, size] :
       {std::pair<uint64_t, uint64_t>{0, 64}, {0x1fe0, 64}, {0x1800, UINT64_MAX}, {UINT64_MAX, 64}, {0x3000, 0}}) {
    segments[1].p_vaddr = at;
    segments[1].p_filesz = size;
    EXPECT_EQ(build_id_of(info), "");
  }
}

// ---- separate debug files

class DebugLinkTest : public ElfSymbolsTest {
 protected:
  DebugLinkTest() {
    stripped_.dynsym = {{"exported", 0x1000, 0x10}};
    stripped_.debug_link = "file.debug";
    full_.symtab = {{"exported", 0x1000, 0x10}, {"internal", 0x1100, 0x10, STB_LOCAL}};
  }
  std::string find() { return std::string(ElfSymbols(write("file", stripped_.bytes())).find(0x1100)); }

  TestElf stripped_;
  TestElf full_;
};

TEST_F(DebugLinkTest, FileOfTheSameBuildIdBesideItIsTaken) {
  EXPECT_EQ(find(), "");
  std::string debug = write("file.debug", full_.bytes());
  EXPECT_EQ(find(), "internal");
  EXPECT_EQ(separate_debug_file(folder_ + "/file"), std::filesystem::canonical(debug));
  std::filesystem::create_directory(folder_ + "/.debug");
  std::filesystem::rename(debug, folder_ + "/.debug/file.debug");
  EXPECT_EQ(find(), "internal");
  std::filesystem::create_symlink(folder_ + "/file", folder_ + "/.debug/link");
  EXPECT_EQ(ElfSymbols(folder_ + "/.debug/link").find(0x1100), "internal");
}

TEST_F(DebugLinkTest, FileOfAnotherBuildIdIsNotTaken) {
  full_.build_id[0] ^= 1;
  write("file.debug", full_.bytes());
  EXPECT_EQ(find(), "");
}

TEST_F(DebugLinkTest, WithoutBuildIdTheChecksumDecides) {
  stripped_.build_id.clear();
  full_.build_id.clear();
  std::string bytes = full_.bytes();
  std::string debug = write("file.debug", bytes);
  EXPECT_EQ(find(), "");
  auto crc = [](const std::string& text) {
    uint32_t value = ~0u;
    for (unsigned char c : text) {
      value ^= c;
      for (int i = 0; i < 8; ++i) value = value >> 1 ^ (value & 1 ? 0xedb88320u : 0);
    }
    return ~value;
  };
  ASSERT_EQ(crc("123456789"), 0xcbf43926u);
  stripped_.debug_link_crc = crc(bytes);
  EXPECT_EQ(find(), "internal");
}

TEST_F(DebugLinkTest, NamesWithFoldersAndCutLinksAreNotFollowed) {
  std::filesystem::create_directory(folder_ + "/other");
  write("other/file.debug", full_.bytes());
  stripped_.debug_link = "other/file.debug";
  EXPECT_EQ(find(), "");
  write("file.debug", full_.bytes());
  stripped_.debug_link = "file.debug";
  std::string bytes = stripped_.bytes();
  for (uint64_t size : {0u, 5u, 11u, 15u}) {
    TestElf::section(bytes, TestElf::kLink).sh_size = size;
    EXPECT_EQ(separate_debug_file(write("file", bytes)), "") << size;
  }
}

// ---- files of this process

uint64_t vaddr_in(const void* address, std::string* path) {
  Dl_info info{};
  link_map* map = nullptr;
  if (!dladdr1(address, &info, reinterpret_cast<void**>(&map), RTLD_DL_LINKMAP)) return 0;
  *path = map->l_name && *map->l_name ? map->l_name : "/proc/self/exe";
  return reinterpret_cast<uint64_t>(address) - map->l_addr;
}

TEST(ElfSymbolsOfProcess, OwnFunctionIsFound) {
  std::string path;
  uint64_t vaddr = vaddr_in(reinterpret_cast<const void*>(&lamina_elf_test_probe), &path);
  uint64_t start = 0;
  EXPECT_EQ(ElfSymbols(path).find(vaddr + 1, &start), "lamina_elf_test_probe");
  EXPECT_EQ(start, vaddr);
}

TEST(ElfSymbolsOfProcess, FunctionOfTheCLibraryIsFound) {
  void* library = dlopen("libc.so.6", RTLD_NOW | RTLD_NOLOAD);
  if (!library) GTEST_SKIP() << "another C library";
  std::string path;
  uint64_t vaddr = vaddr_in(dlsym(library, "gnu_get_libc_version"), &path);
  EXPECT_EQ(ElfSymbols(path).find(vaddr + 2), "gnu_get_libc_version");
}

// Runs a tool; whether it is there and did its work.
bool run(const std::string& command) { return system((command + " >/dev/null 2>&1").c_str()) == 0; }

TEST_F(ElfSymbolsTest, StrippedCopyHasItsFunctionsInItsDebugFile) {
  std::string original = std::filesystem::canonical("/proc/self/exe");
  std::string stripped = folder_ + "/program";
  std::string debug = folder_ + "/program.debug";
  if (!run("strip -o " + stripped + " " + original) || !run("objcopy --only-keep-debug " + original + " " + debug)) {
    GTEST_SKIP() << "no binutils";
  }
  std::string path;
  uint64_t vaddr = vaddr_in(reinterpret_cast<const void*>(&lamina_elf_test_probe), &path);
  EXPECT_EQ(ElfSymbols(stripped).find(vaddr), "");
  EXPECT_EQ(ElfSymbols(debug).find(vaddr), "lamina_elf_test_probe");
  ASSERT_TRUE(run("objcopy --add-gnu-debuglink=" + debug + " " + stripped));
  EXPECT_EQ(ElfSymbols(stripped).find(vaddr), "lamina_elf_test_probe");
  EXPECT_EQ(build_id_of_file(debug), build_id_of_file(original));
  // By the checksum, as binutils make it.
  ASSERT_TRUE(run("objcopy --remove-section=.note.gnu.build-id " + stripped));
  EXPECT_EQ(ElfSymbols(stripped).find(vaddr), "lamina_elf_test_probe");
}

// ---- damage

void look_at(const std::string& path, uint64_t first, uint64_t last) {
  ElfSymbols symbols(path);
  uint64_t start = 0;
  size_t length = 0;
  for (uint64_t i = 0; i <= 64; ++i) {
    uint64_t vaddr = first + (last - first) / 64 * i;
    std::string_view name = symbols.find(vaddr, &start);
    for (char c : name) length += c != 0;
    ASSERT_TRUE(name.empty() || start <= vaddr);
  }
  ASSERT_LE(length, 65 * ElfSymbols::kMaxName);
  ASSERT_LE(build_id_of_file(path).size(), 128);
  separate_debug_file(path);
  debug_info_bytes(path);
}

class DamagedElfTest : public ElfSymbolsTest {
 protected:
  DamagedElfTest() {
    TestElf elf;
    for (uint64_t i = 0; i < 8; ++i)
      elf.symtab.push_back({"function" + std::to_string(i), kText + 0x10 * i, i % 3 * 8});
    elf.dynsym = {{"exported", 0x1000, 0x10}, {"other", 0x1100, 0}};
    elf.debug_link = "file.debug";
    bytes_ = elf.bytes();
    write("file.debug", bytes_);
    path_ = write("file", bytes_);
  }
  // Over what is there: a file that is emptied first goes to the disk each time.
  void look_at_bytes(const std::string& bytes) {
    std::fstream(path_, std::ios::in | std::ios::out | std::ios::binary) << bytes;
    std::filesystem::resize_file(path_, bytes.size());
    look_at(path_, kText - 8, kText + 0x200);
  }

  std::string bytes_;
  std::string path_;
};

TEST_F(DamagedElfTest, CutAnywhere) {
  for (size_t size = 0; size <= bytes_.size(); ++size) look_at_bytes(bytes_.substr(0, size));
}

TEST_F(DamagedElfTest, EveryByteChanged) {
  for (size_t at = 0; at < bytes_.size(); ++at) {
    for (char value : {'\0', '\x01', '\x7f', '\xff'}) {
      std::string damaged = bytes_;
      damaged[at] = value;
      look_at_bytes(damaged);
    }
  }
}

TEST_F(DamagedElfTest, ManyBytesChanged) {
  std::mt19937 random(20240531);
  for (int round = 0; round < 3000; ++round) {
    std::string damaged = bytes_;
    for (uint32_t i = random() % 24 + 1; i > 0; --i) damaged[random() % damaged.size()] = static_cast<char>(random());
    if (round % 4 == 0) damaged.resize(random() % damaged.size());
    look_at_bytes(damaged);
  }
}

// Numbers where files have offsets, counts and sizes, so that more of them come through the first checks.
TEST_F(DamagedElfTest, HeadersWithAnyNumbers) {
  std::mt19937_64 random(7);
  const uint64_t numbers[] = {
      0, 1, 8, 24, 64, bytes_.size() - 1, bytes_.size(), 0xffff, 1u << 31, UINT32_MAX, INT64_MAX, UINT64_MAX - 7};
  size_t sections = TestElf::header(bytes_).e_shoff;
  for (int round = 0; round < 3000; ++round) {
    std::string damaged = bytes_;
    for (uint64_t i = random() % 6 + 1; i > 0; --i) {
      uint64_t number = numbers[random() % std::size(numbers)];
      size_t width = random() % 2 ? 8 : 4;
      size_t at = sections + random() % ((damaged.size() - sections) / 8) * 8;
      memcpy(damaged.data() + at, &number, width);
    }
    look_at_bytes(damaged);
  }
}

class DamagedLibraryTest : public ElfSymbolsTest {
 protected:
  DamagedLibraryTest() {
    void* library = dlopen("libm.so.6", RTLD_NOW | RTLD_NOLOAD);
    void* function = library ? dlsym(library, "fegetround") : nullptr;
    if (!function) return;
    vaddr_in(function, &library_);
    path_ = folder_ + "/library";
    std::filesystem::copy_file(library_, path_);
    size_ = std::filesystem::file_size(path_);
  }
  void SetUp() override {
    if (library_.empty()) GTEST_SKIP() << "another C library";
  }

  std::string library_;
  std::string path_;
  size_t size_ = 0;
};

TEST_F(DamagedLibraryTest, CutAnywhere) {
  constexpr size_t kSizes = 150;
  for (size_t i = kSizes; i-- > 0;) {
    std::filesystem::resize_file(path_, size_ * i / kSizes + i % 7);
    look_at(path_, 0, size_);
  }
}

TEST_F(DamagedLibraryTest, BytesChanged) {
  std::mt19937 random(99);
  std::fstream file(path_, std::ios::in | std::ios::out | std::ios::binary);
  // Damage stays, and grows. Most of it is done to the headers and tables at both ends.
  for (int round = 0; round < 150; ++round) {
    for (int i = 0; i < 16; ++i) {
      size_t at = random() % size_;
      if (i % 4 == 1) at = 64 + random() % 0x8000;
      if (i % 4 == 2) at = size_ - 1 - random() % 4096;
      file.seekp(static_cast<std::streamoff>(at));
      file.put(static_cast<char>(random()));
    }
    file.flush();
    look_at(path_, 0, size_);
  }
}

}  // namespace
}  // namespace lamina
