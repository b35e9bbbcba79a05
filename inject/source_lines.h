// The source line of an address of an ELF file, where debug information for it is on the machine. DWARF is read by
// elfutils' libdw, if the machine has it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <unordered_set>

namespace lamina {

struct SourcePlace {
  std::string file;
  int line;
};

// For one thread. The files of the last places stay open; it is best to ask for all places of one file after another.
class SourceLines {
 public:
  static constexpr size_t kMaxOpen = 4;
  static constexpr uint64_t kMaxDebugInfo = 256u
                                            << 20;  // bytes of .debug_info; files with more are as if they had none

  explicit SourceLines(const char* library = "libdw.so.1");
  SourceLines(const SourceLines&) = delete;
  SourceLines& operator=(const SourceLines&) = delete;
  ~SourceLines();

  bool available() const { return library_ != nullptr; }

  // Of the instruction that the address lies in: for a caller's frame, give the byte before the return address. The
  // path is as the compiler wrote it.
  std::optional<SourcePlace> find(const std::string& path, uint64_t vaddr);

  size_t open_files() const { return files_.size(); }

 private:
  struct Library;
  class File;

  File* file_of(const std::string& path);
  std::unique_ptr<File> open(const std::string& path);

  std::unique_ptr<Library> library_;             // null if there is none
  std::list<std::unique_ptr<File>> files_;       // last used first
  std::unordered_set<std::string> without_any_;  // files that have no debug information
};

}  // namespace lamina
