// The profile file: creates folder and file, appends compressed chunks.
#pragma once

#include <sys/types.h>
#include <zstd.h>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "inject/record.h"

namespace lamina {

class FileWriter {
 public:
  FileWriter() = default;
  FileWriter(const FileWriter&) = delete;
  FileWriter& operator=(const FileWriter&) = delete;
  ~FileWriter();

  // Creates `folder` and in it HOST.PID.lamina, never writing to a file that is there already. On failure returns false
  // and says why in problem().
  bool open(const std::string& folder);

  // Appends the records as one chunk, or as several where they exceed kMaxChunkBytes. `chunk` gives kind, base_time,
  // thread and sequence. False once the file could not be written; from then on nothing is tried again.
  bool write(format::ChunkHeader chunk, std::span<const char> records);

  uint64_t chunks() const { return chunks_; }
  const std::string& path() const { return path_; }
  const std::string& problem() const { return problem_; }

 private:
  bool write_chunk(format::ChunkHeader chunk, std::span<const char> records);
  bool write_all(const void* bytes, size_t size);
  bool fail(const char* what);
  bool keep(int file);
  bool is_ours() const;

  int file_ = -1;
  dev_t device_ = 0;
  ino_t inode_ = 0;
  std::string path_;
  std::string problem_;
  uint64_t chunks_ = 0;
  ZSTD_CCtx* compressor_ = nullptr;
  std::vector<char> buffer_;
};

}  // namespace lamina
