// Reads one profile file: chunks in file order, decompressed one at a time, so that memory does not grow with the file.
// A profile is hostile input: every size is checked, and what is damaged is skipped and reported.
#pragma once

#include <cstdio>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "inject/record.h"

typedef struct ZSTD_DCtx_s ZSTD_DCtx;

namespace lamina {

// A record as it lies in its chunk.
class RecordView {
 public:
  RecordView(format::RecordHeader header, std::span<const char> bytes) : header_(header), bytes_(bytes) {}

  const format::RecordHeader& header() const { return header_; }

  // The record as T; nothing when it is shorter than one. A longer one is of a newer recorder: its end is not read.
  template <typename T>
  std::optional<T> as() const {
    if (bytes_.size() < sizeof(T)) return std::nullopt;
    T record;
    memcpy(&record, bytes_.data(), sizeof(T));
    return record;
  }

  std::vector<char> copy() const { return {bytes_.begin(), bytes_.end()}; }

  // The bytes behind a T, at most `size` of them.
  template <typename T>
  std::span<const char> behind(size_t size = SIZE_MAX) const {
    if (bytes_.size() <= sizeof(T)) return {};
    auto rest = bytes_.subspan(sizeof(T));
    return rest.first(std::min(size, rest.size()));
  }

 private:
  format::RecordHeader header_;
  std::span<const char> bytes_;
};

struct Chunk {
  format::ChunkHeader header;
  uint64_t offset = 0;  // of its header in the file
  std::vector<char> records;

  // Calls `visit` for each record, in order. Returns false when the records end in the middle of one.
  template <typename Visit>
  bool for_each(Visit&& visit) const {
    std::span<const char> rest = records;
    while (!rest.empty()) {
      format::RecordHeader header_bytes;
      if (rest.size() < sizeof(header_bytes)) return false;
      memcpy(&header_bytes, rest.data(), sizeof(header_bytes));
      size_t size = header_bytes.units * size_t{8};
      if (size < sizeof(header_bytes) || size > rest.size()) return false;
      visit(RecordView(header_bytes, rest.first(size)));
      rest = rest.subspan(size);
    }
    return true;
  }
};

// A stretch of the file that could not be read.
struct Damage {
  uint64_t offset;
  std::string what;
};

class ProfileFile {
 public:
  // Throws InputError when the file is not a profile of a version this program reads.
  explicit ProfileFile(const std::string& path);
  ~ProfileFile();

  // The next chunk that is whole; false at the end of the file. With `only`, chunks of other kinds are passed over
  // unread.
  bool next(Chunk& chunk, std::optional<format::ChunkKind> only = std::nullopt);

  const std::string& path() const { return path_; }
  const format::FileHeader& header() const { return header_; }
  const std::vector<Damage>& damage() const { return damage_; }
  bool has_trailer() const { return has_trailer_; }
  uint64_t size() const { return size_; }
  uint64_t position() const { return position_; }

 private:
  struct Close {
    void operator()(FILE* file) const { fclose(file); }
  };

  bool read(void* bytes, size_t size);
  bool read_header(Chunk& chunk, std::string& problem);
  bool read_records(Chunk& chunk, std::string& problem);
  bool fits(const format::ChunkHeader& header, uint64_t at) const;
  bool find_next_chunk();
  [[noreturn]] void fail(const std::string& what) const;

  std::string path_;
  std::unique_ptr<FILE, Close> file_;
  ZSTD_DCtx* decompressor_;
  format::FileHeader header_{};
  std::vector<Damage> damage_;
  std::vector<char> stored_;
  uint64_t size_ = 0;
  uint64_t position_ = 0;
  bool has_trailer_ = false;
};

// Who says what the phases of a process are. Where the program names any, the steps that the PyTorch hook found by itself
// are none: its warm-up would be counted with what it wants to be seen.
enum class PhaseSource { kNone, kHook, kProgram };

// Reads the definitions of the file only.
PhaseSource phase_source(const std::string& path);

// The files of a profile: those of a folder, by name, or the one file. Throws InputError when there are none.
std::vector<std::string> profile_files(const std::string& path);

}  // namespace lamina
