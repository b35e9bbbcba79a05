#include "report/records/profile_file.h"

#include <sys/stat.h>
#include <zstd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>

#include "report/errors.h"
#include "report/format.h"

namespace lamina {

using namespace format;

namespace {

bool is_chunk_header(const ChunkHeader& header) {
  return header.magic == kChunkMagic && header.check == header_check(header) && header.raw_size <= kMaxChunkBytes &&
         header.stored_size <= ZSTD_COMPRESSBOUND(kMaxChunkBytes);
}

}  // namespace

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
  bool in_damage = false;
  while (position_ < size_) {
    std::string problem;
    if (fseeko(file_.get(), static_cast<off_t>(position_), SEEK_SET) == 0 && read_header(chunk, problem)) {
      uint64_t end = position_ + sizeof(ChunkHeader) + chunk.header.stored_size;
      bool wanted = !only || chunk.header.kind == *only;
      if (!wanted || read_records(chunk, problem)) {
        position_ = end;
        if (chunk.header.kind == ChunkKind::kTrailer) has_trailer_ = true;
        if (wanted) return true;
        in_damage = false;
        continue;
      }
    }
    if (!in_damage) damage_.push_back({position_, problem});
    in_damage = true;
    if (!find_next_chunk()) break;
  }
  position_ = size_;
  return false;
}

bool ProfileFile::read_header(Chunk& chunk, std::string& problem) {
  problem = "cut in the middle of a chunk";
  if (!read(&chunk.header, sizeof(chunk.header))) return false;
  chunk.offset = position_;
  if (!is_chunk_header(chunk.header)) {
    problem = "damaged chunk header";
    return false;
  }
  return fits(chunk.header, position_);
}

bool ProfileFile::fits(const ChunkHeader& header, uint64_t at) const {
  return header.stored_size <= size_ - at - sizeof(header);
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

// Moves to the next place behind this one where a chunk begins.
bool ProfileFile::find_next_chunk() {
  constexpr size_t kWindow = 1u << 16;
  std::vector<char> window(kWindow);
  for (uint64_t at = position_ + 1; at + sizeof(ChunkHeader) <= size_;) {
    if (fseeko(file_.get(), static_cast<off_t>(at), SEEK_SET) != 0) return false;
    size_t count = fread(window.data(), 1, kWindow, file_.get());
    if (count < sizeof(ChunkHeader)) return false;
    size_t places = count - sizeof(ChunkHeader) + 1;
    for (size_t i = 0; i < places; ++i) {
      if (memcmp(window.data() + i, &kChunkMagic, sizeof(kChunkMagic)) != 0) continue;
      ChunkHeader header;
      memcpy(&header, window.data() + i, sizeof(header));
      if (!is_chunk_header(header) || !fits(header, at + i)) continue;
      position_ = at + i;
      return true;
    }
    at += places;
  }
  return false;
}

PhaseSource phase_source(const std::string& path) {
  ProfileFile file(path);
  Chunk chunk;
  PhaseSource source = PhaseSource::kNone;
  while (source != PhaseSource::kProgram && file.next(chunk, ChunkKind::kDefinitions)) {
    chunk.for_each([&](const RecordView& record) {
      if (record.header().kind != RecordKind::kStep) return;
      source = std::max(source, record.header().flags & kStepFound ? PhaseSource::kHook : PhaseSource::kProgram);
    });
  }
  return source;
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
