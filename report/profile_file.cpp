#include "report/profile_file.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <zstd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>

#include "report/errors.h"

namespace lamina {

using namespace format;

void ProfileFile::fail(const std::string& what) const { throw InputError(fmt::format("{}: {}", path_, what)); }

ProfileFile::ProfileFile(const std::string& path) : path_(path), decompressor_(nullptr) {
  file_.reset(fopen(path.c_str(), "rb"));
  if (!file_) fail(strerror(errno));
  struct stat status {};
  if (fstat(fileno(file_.get()), &status) != 0) fail(strerror(errno));
  size_ = static_cast<uint64_t>(status.st_size);
  if (size_ == 0) fail("the file is empty: the program was killed before it recorded anything");
  if (!read(&header_, sizeof(header_))) fail("too short for a profile: it was cut in its header");
  if (memcmp(header_.magic, kMagic, sizeof(kMagic)) != 0) fail("not a Lamina profile");
  if (header_.version != kVersion) {
    fail(fmt::format("format version {}, this lamina reads version {}: use the lamina of the recorder that wrote it",
                     header_.version, kVersion));
  }
  if (header_.features & ~kKnownFeatures) fail("uses features that this lamina does not know: use a newer one");
  if (header_.header_size < sizeof(header_)) fail("damaged at offset 10: impossible header size");
  position_ = header_.header_size;
  decompressor_ = ZSTD_createDCtx();
}

ProfileFile::~ProfileFile() { ZSTD_freeDCtx(decompressor_); }

bool ProfileFile::read(void* bytes, size_t size) { return fread(bytes, 1, size, file_.get()) == size; }

bool ProfileFile::next(Chunk& chunk, std::optional<ChunkKind> only) {
  while (position_ < size_) {
    std::string problem;
    if (fseeko(file_.get(), static_cast<off_t>(position_), SEEK_SET) == 0 && read_header(chunk, problem)) {
      uint64_t end = position_ + sizeof(ChunkHeader) + chunk.header.stored_size;
      bool wanted = !only || chunk.header.kind == *only;
      if (!wanted || read_records(chunk, problem)) {
        position_ = end;
        if (chunk.header.kind == ChunkKind::kTrailer) has_trailer_ = true;
        if (wanted) return true;
        continue;
      }
    }
    damage_.push_back({position_, problem});
    if (!find_next_chunk()) break;
  }
  position_ = size_;
  return false;
}

bool ProfileFile::read_header(Chunk& chunk, std::string& problem) {
  problem = "cut in the middle of a chunk";
  if (!read(&chunk.header, sizeof(chunk.header))) return false;
  const ChunkHeader& header = chunk.header;
  chunk.offset = position_;
  if (header.magic != kChunkMagic || header.check != header_check(header) || header.raw_size > kMaxChunkBytes) {
    problem = "damaged chunk header";
    return false;
  }
  return header.stored_size <= size_ - position_ - sizeof(header);
}

bool ProfileFile::read_records(Chunk& chunk, std::string& problem) {
  stored_.resize(chunk.header.stored_size);
  if (!read(stored_.data(), stored_.size())) return false;
  chunk.records.resize(chunk.header.raw_size);
  size_t size = ZSTD_decompressDCtx(decompressor_, chunk.records.data(), chunk.records.size(), stored_.data(), stored_.size());
  if (!ZSTD_isError(size) && size == chunk.header.raw_size) return true;
  problem = "damaged chunk";
  return false;
}

// Moves to the next place behind this one that looks like a chunk.
bool ProfileFile::find_next_chunk() {
  constexpr size_t kWindow = 1u << 16;
  char magic[sizeof(kChunkMagic)];
  memcpy(magic, &kChunkMagic, sizeof(magic));
  std::vector<char> window(kWindow);
  for (uint64_t at = position_ + 1; at < size_; at += kWindow - sizeof(magic) + 1) {
    if (fseeko(file_.get(), static_cast<off_t>(at), SEEK_SET) != 0) return false;
    size_t count = fread(window.data(), 1, kWindow, file_.get());
    auto found = std::search(window.begin(), window.begin() + static_cast<long>(count), magic, magic + sizeof(magic));
    if (found != window.begin() + static_cast<long>(count)) {
      position_ = at + static_cast<uint64_t>(found - window.begin());
      return true;
    }
    if (count < kWindow) return false;
  }
  return false;
}

bool defines_phases(const std::string& path) {
  ProfileFile file(path);
  Chunk chunk;
  bool found = false;
  while (!found && file.next(chunk, ChunkKind::kDefinitions)) {
    chunk.for_each([&](const RecordView& record) { found = found || record.header().kind == RecordKind::kStep; });
  }
  return found;
}

std::vector<std::string> profile_files(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code error;
  if (!fs::exists(path, error)) throw InputError(path + ": no such profile");
  if (!fs::is_directory(path, error)) return {path};
  std::vector<std::string> files;
  for (const auto& entry : fs::directory_iterator(path, error)) {
    if (entry.path().extension() == kFileSuffix) files.push_back(entry.path().string());
  }
  if (error) throw InputError(path + ": " + error.message());
  if (files.empty()) {
    throw InputError(path + ": no profile in this folder (no *" + kFileSuffix +
                     " file): the program did not use CUDA, or was not run under lamina");
  }
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace lamina
