#include "inject/file_writer.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "inject/clock.h"

namespace lamina {

using namespace format;

namespace {

// Level 1 halves the recorder's share of a core against the default and costs a tenth in size.
constexpr int kCompressionLevel = 1;

constexpr int kLowestDescriptor = 512;

// A profile tells of the program's command line, environment and code: it is for its user alone.
bool make_folders(const std::string& folder) {
  for (size_t slash = folder.find('/', 1); slash != std::string::npos; slash = folder.find('/', slash + 1)) {
    mkdir(folder.substr(0, slash).c_str(), 0777);
  }
  return mkdir(folder.c_str(), 0700) == 0 || errno == EEXIST;
}

std::string host_name() {
  char name[256] = "";
  gethostname(name, sizeof(name) - 1);
  std::string host = name;
  for (char& c : host) {
    if (c == '/') c = '_';
  }
  return host.empty() ? "host" : host;
}

// How many bytes of whole records fit into one chunk.
size_t whole_records(std::span<const char> records) {
  size_t size = 0;
  while (size < records.size()) {
    RecordHeader header;
    memcpy(&header, records.data() + size, sizeof(header));
    size_t next = size + header.units * size_t{8};
    if (next > kMaxChunkBytes) break;
    size = next;
  }
  return size;
}

}  // namespace

FileWriter::~FileWriter() {
  if (is_ours()) close(file_);
  ZSTD_freeCCtx(compressor_);
}

bool FileWriter::fail(const char* what) {
  problem_ = std::string(what) + ": " + strerror(errno);
  if (is_ours()) close(file_);
  file_ = -1;
  return false;
}

// A program may close descriptors that it did not open, and get ours for a file of its own.
bool FileWriter::is_ours() const {
  struct stat status {};
  return file_ >= 0 && fstat(file_, &status) == 0 && status.st_dev == device_ && status.st_ino == inode_;
}

// Away from the low numbers, where a program with a closed stdout would find it.
bool FileWriter::keep(int file) {
  file_ = fcntl(file, F_DUPFD_CLOEXEC, kLowestDescriptor);
  if (file_ < 0) file_ = fcntl(file, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
  close(file);
  struct stat status {};
  if (file_ < 0 || fstat(file_, &status) != 0) return false;
  device_ = status.st_dev;
  inode_ = status.st_ino;
  return true;
}

bool FileWriter::open(const std::string& folder) {
  if (!make_folders(folder)) return fail(("can not create folder " + folder).c_str());
  std::string base = folder + "/" + host_name() + "." + std::to_string(getpid());
  path_ = base + kFileSuffix;
  // The same process id can come again, from another container of the same host name.
  int file = -1;
  for (int i = 2; i < 100; ++i) {
    file = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0600);
    if (file >= 0 || errno != EEXIST) break;
    path_ = base + "." + std::to_string(i) + kFileSuffix;
  }
  if (file < 0 || !keep(file)) return fail(("can not create " + path_).c_str());
  compressor_ = ZSTD_createCCtx();
  if (!compressor_) {
    errno = ENOMEM;
    return fail("zstd");
  }
  ZSTD_CCtx_setParameter(compressor_, ZSTD_c_compressionLevel, kCompressionLevel);
  ZSTD_CCtx_setParameter(compressor_, ZSTD_c_checksumFlag, 1);
  FileHeader header{};
  memcpy(header.magic, kMagic, sizeof(kMagic));
  header.version = kVersion;
  header.header_size = sizeof(header);
  header.start_time = realtime_now();
  header.pid = static_cast<uint32_t>(getpid());
  return write_all(&header, sizeof(header));
}

bool FileWriter::write(ChunkHeader chunk, std::span<const char> records) {
  while (!records.empty()) {
    size_t size = records.size() <= kMaxChunkBytes ? records.size() : whole_records(records);
    if (!write_chunk(chunk, records.first(size))) return false;
    records = records.subspan(size);
  }
  return file_ >= 0;
}

bool FileWriter::write_chunk(ChunkHeader chunk, std::span<const char> records) {
  if (file_ < 0) return false;
  buffer_.resize(sizeof(ChunkHeader) + ZSTD_compressBound(records.size()));
  size_t stored = ZSTD_compress2(compressor_, buffer_.data() + sizeof(ChunkHeader), buffer_.size() - sizeof(ChunkHeader),
                                 records.data(), records.size());
  if (ZSTD_isError(stored)) {
    errno = ENOMEM;
    return fail(("can not write " + path_).c_str());
  }
  chunk.magic = kChunkMagic;
  chunk.stored_size = static_cast<uint32_t>(stored);
  chunk.raw_size = static_cast<uint32_t>(records.size());
  chunk.check = header_check(chunk);
  memcpy(buffer_.data(), &chunk, sizeof(chunk));
  ++chunks_;
  return write_all(buffer_.data(), sizeof(chunk) + stored);
}

bool FileWriter::write_all(const void* bytes, size_t size) {
  const char* begin = static_cast<const char*>(bytes);
  if (!is_ours()) {
    errno = EBADF;
    return fail(("the program has closed " + path_).c_str());
  }
  while (size > 0) {
    ssize_t written = ::write(file_, begin, size);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return fail(("can not write " + path_).c_str());
    begin += written;
    size -= static_cast<size_t>(written);
  }
  return true;
}

}  // namespace lamina
