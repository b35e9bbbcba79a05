// Source lines of this program's own functions, from its debug information in every form that it comes in.
#include "inject/source_lines.h"

#include <elf.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <link.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>

#include "inject/elf_symbols.h"

constexpr int kProbeLine = __LINE__ + 2;
extern "C" {
__attribute__((noinline, used)) int lamina_lines_test_probe(int value) { return value * 5 + 2; }
}

namespace lamina {
namespace {

using testing::EndsWith;

uint64_t vaddr_of_probe() {
  uint64_t bias = 0;
  auto take_first = [](dl_phdr_info* info, size_t, void* result) {  // the program itself
    *static_cast<uint64_t*>(result) = info->dlpi_addr;
    return 1;
  };
  dl_iterate_phdr(take_first, &bias);
  return reinterpret_cast<uint64_t>(&lamina_lines_test_probe) - bias;
}

// Runs a tool; whether it is there and did its work.
bool run(const std::string& command) { return system((command + " >/dev/null 2>&1").c_str()) == 0; }

TEST(SourceLinesLibrary, WithoutItThereAreNoLines) {
  for (const char* name : {"liblamina_none.so.1", "libm.so.6"}) {
    SourceLines lines(name);
    EXPECT_FALSE(lines.available());
    EXPECT_EQ(lines.find("/proc/self/exe", vaddr_of_probe()), std::nullopt);
    EXPECT_EQ(lines.open_files(), 0);
  }
}

class SourceLinesTest : public testing::Test {
 protected:
  SourceLinesTest() {
    std::string name = testing::TempDir() + "/lamina_lines_test.XXXXXX";
    folder_ = mkdtemp(name.data());
    program_ = std::filesystem::canonical("/proc/self/exe");
  }
  ~SourceLinesTest() override { std::filesystem::remove_all(folder_); }
  void SetUp() override {
    if (!lines_.available()) GTEST_SKIP() << "no libdw";
    if (debug_info_bytes(program_) == 0) GTEST_SKIP() << "built without debug information";
  }

  void expect_probe(const std::string& path) {
    std::optional<SourcePlace> place = lines_.find(path, vaddr_of_probe());
    ASSERT_TRUE(place) << path;
    EXPECT_THAT(place->file, EndsWith("source_lines_test.cpp"));
    EXPECT_EQ(place->line, kProbeLine);
  }
  void expect_nothing(const std::string& path) { EXPECT_FALSE(lines_.find(path, vaddr_of_probe())) << path; }

  SourceLines lines_;
  std::string folder_;
  std::string program_;
};

TEST_F(SourceLinesTest, FunctionHasItsFileAndLine) {
  expect_probe("/proc/self/exe");
  expect_probe(program_);
}

TEST_F(SourceLinesTest, AddressesOutsideOfTheCodeHaveNone) {
  for (uint64_t vaddr : {uint64_t{1} << 40, UINT64_MAX}) {
    EXPECT_FALSE(lines_.find(program_, vaddr)) << vaddr;
  }
}

TEST_F(SourceLinesTest, WithoutArangesTheUnitIsFoundByItsRanges) {
  std::string copy = folder_ + "/program";
  if (!run("objcopy --remove-section=.debug_aranges " + program_ + " " + copy)) GTEST_SKIP() << "no objcopy";
  expect_probe(copy);
  EXPECT_FALSE(lines_.find(copy, 0));
  EXPECT_FALSE(lines_.find(copy, uint64_t{1} << 40));
}

TEST_F(SourceLinesTest, CompressedDebugInformationIsRead) {
  std::string copy = folder_ + "/program";
  if (!run("objcopy --compress-debug-sections=zlib-gabi " + program_ + " " + copy)) GTEST_SKIP() << "no objcopy";
  expect_probe(copy);
  EXPECT_GE(debug_info_bytes(copy), debug_info_bytes(program_));
}

TEST_F(SourceLinesTest, SeparateDebugFileIsRead) {
  std::string stripped = folder_ + "/program";
  std::string debug = folder_ + "/program.debug";
  if (!run("strip -o " + stripped + " " + program_) || !run("objcopy --only-keep-debug " + program_ + " " + debug)) {
    GTEST_SKIP() << "no binutils";
  }
  EXPECT_EQ(debug_info_bytes(stripped), 0);
  expect_nothing(stripped);
  std::string linked = folder_ + "/linked";
  ASSERT_TRUE(run("objcopy --add-gnu-debuglink=" + debug + " " + stripped + " " + linked));
  expect_probe(linked);
}

TEST_F(SourceLinesTest, FewFilesStayOpen) {
  std::vector<std::string> paths;
  for (int i = 0; i < 7; ++i) {
    paths.push_back(folder_ + "/link" + std::to_string(i));
    std::filesystem::create_symlink(program_, paths.back());
  }
  auto descriptors = [] {
    std::filesystem::directory_iterator folder("/proc/self/fd");
    return std::distance(begin(folder), end(folder));
  };
  auto before = descriptors();
  for (int round = 0; round < 2; ++round) {
    for (const std::string& path : paths) expect_probe(path);
    EXPECT_EQ(lines_.open_files(), SourceLines::kMaxOpen);
  }
  EXPECT_EQ(descriptors(), before);
}

TEST_F(SourceLinesTest, WhatHasNoDebugInformationHasNoLines) {
  std::ofstream(folder_ + "/text") << "text";
  for (int round = 0; round < 2; ++round) {
    for (const std::string& path :
         {std::string(), std::string("[vdso]"), folder_, folder_ + "/none", folder_ + "/text"}) {
      expect_nothing(path);
    }
  }
  EXPECT_EQ(lines_.open_files(), 0);
}

// ---- files that are too large, or damaged

class ChangedProgram : public SourceLinesTest {
 protected:
  ChangedProgram() {
    bytes_.resize(std::filesystem::file_size(program_));
    std::ifstream(program_, std::ios::binary).read(bytes_.data(), static_cast<std::streamsize>(bytes_.size()));
  }
  Elf64_Shdr* sections() {
    auto* header = reinterpret_cast<const Elf64_Ehdr*>(bytes_.data());
    return reinterpret_cast<Elf64_Shdr*>(bytes_.data() + header->e_shoff);
  }
  Elf64_Shdr* section(const std::string& name) {
    auto* header = reinterpret_cast<const Elf64_Ehdr*>(bytes_.data());
    const char* names = bytes_.data() + sections()[header->e_shstrndx].sh_offset;
    for (int i = 0; i < header->e_shnum; ++i) {
      if (names + sections()[i].sh_name == name) return sections() + i;
    }
    return nullptr;
  }
  std::string write(const std::string& name) {
    std::string path = folder_ + "/" + name;
    std::ofstream(path, std::ios::binary) << bytes_;
    return path;
  }

  std::string bytes_;
};

TEST_F(ChangedProgram, MoreDebugInformationThanTheLimitIsNotRead) {
  Elf64_Shdr* info = section(".debug_info");
  ASSERT_TRUE(info);
  info->sh_size = SourceLines::kMaxDebugInfo + 1;
  uint64_t end = info->sh_offset + info->sh_size;
  std::string path = write("large");
  std::filesystem::resize_file(path, end);  // not written, so on no disk
  EXPECT_EQ(debug_info_bytes(path), SourceLines::kMaxDebugInfo + 1);
  expect_nothing(path);
  EXPECT_EQ(lines_.open_files(), 0);
}

TEST_F(ChangedProgram, WhatUnpacksToMoreThanTheLimitIsNotUnpacked) {
  Elf64_Shdr* text = section(".debug_str");
  if (!text) GTEST_SKIP() << "no .debug_str";
  text->sh_flags |= SHF_COMPRESSED;
  Elf64_Chdr compressed{};
  compressed.ch_type = ELFCOMPRESS_ZLIB;
  compressed.ch_size = UINT64_MAX - 5;
  memcpy(bytes_.data() + text->sh_offset, &compressed, sizeof(compressed));
  std::string path = write("packed");
  EXPECT_EQ(debug_info_bytes(path), UINT64_MAX);
  expect_nothing(path);
}

TEST_F(ChangedProgram, CutFilesAreSurvived) {
  std::string path = write("cut");
  constexpr size_t kSizes = 50;
  for (size_t i = kSizes; i-- > 0;) {
    std::filesystem::resize_file(path, bytes_.size() * i / kSizes + i % 5);
    SourceLines lines;
    lines.find(path, vaddr_of_probe());
  }
}

TEST_F(ChangedProgram, DamageIsSurvived) {
  std::string path = write("damaged");
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  std::mt19937 random(11);
  std::vector<Elf64_Shdr> damaged;
  for (const char* name :
       {".debug_info", ".debug_abbrev", ".debug_line", ".debug_line_str", ".debug_aranges", ".debug_rnglists"}) {
    if (Elf64_Shdr* found = section(name); found && found->sh_size > 0) damaged.push_back(*found);
  }
  uint64_t vaddr = vaddr_of_probe();
  for (int round = 0; round < 15; ++round) {
    for (int i = 0; i < 200; ++i) {
      const Elf64_Shdr& here = damaged[random() % damaged.size()];
      file.seekp(static_cast<std::streamoff>(here.sh_offset + random() % here.sh_size));
      file.put(static_cast<char>(random()));
    }
    file.flush();
    SourceLines lines;
    for (int i = -8; i < 8; ++i) lines.find(path, vaddr + static_cast<uint64_t>(i * 4096));
  }
}

}  // namespace
}  // namespace lamina
