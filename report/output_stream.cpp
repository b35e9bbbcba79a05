#include "report/output_stream.h"

#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <utility>
#include <vector>

#include "report/errors.h"
#include "report/output.h"

namespace lamina {

struct OutputStream::Deflater {
  static constexpr int kGzipWindow = 15 + 16;  // zlib.h: 16 more than the window's bits makes it gzip
  static constexpr int kMemory = 8;            // zlib's default

  Deflater() : buffer(256u << 10) {
    if (deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, kGzipWindow, kMemory, Z_DEFAULT_STRATEGY) != Z_OK) throw std::bad_alloc();
  }
  ~Deflater() { deflateEnd(&stream); }

  z_stream stream{};
  std::vector<char> buffer;
};

namespace {

bool is_gzip(std::string_view path) { return path.ends_with(".gz"); }

// A device or pipe is written to as it is.
bool is_replaced_whole(const std::string& path) {
  struct stat status;
  return stat(path.c_str(), &status) != 0 || S_ISREG(status.st_mode);
}

}  // namespace

OutputStream::OutputStream(std::string path, bool force) : path_(std::move(path)) {
  if (path_ == "-") return;
  if (!force && access(path_.c_str(), F_OK) == 0) throw UsageError(path_ + " exists: name another file, or overwrite it with --force");
  part_ = is_replaced_whole(path_) ? path_ + ".part" : path_;
  file_ = fopen(part_.c_str(), "we");
  if (!file_) fail();
  if (is_gzip(path_)) deflater_ = std::make_unique<Deflater>();
}

OutputStream::~OutputStream() {
  if (!file_) return;
  fclose(file_);
  if (part_ != path_) unlink(part_.c_str());
}

void OutputStream::fail() const { throw std::runtime_error("cannot write " + path_ + ": " + strerror(errno)); }

void OutputStream::put(std::string_view bytes) {
  if (fwrite(bytes.data(), 1, bytes.size(), file_) != bytes.size()) fail();
}

void OutputStream::write(std::string_view text) {
  if (!file_) return write_stdout(text);
  if (!deflater_) return put(text);
  z_stream& stream = deflater_->stream;
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  bool last = text.empty();
  do {
    stream.next_out = reinterpret_cast<Bytef*>(deflater_->buffer.data());
    stream.avail_out = static_cast<uInt>(deflater_->buffer.size());
    deflate(&stream, last ? Z_FINISH : Z_NO_FLUSH);
    put({deflater_->buffer.data(), deflater_->buffer.size() - stream.avail_out});
  } while (stream.avail_out == 0);
}

void OutputStream::finish() {
  if (!file_) return;
  if (deflater_) write({});
  FILE* file = std::exchange(file_, nullptr);
  bool whole = fclose(file) == 0 && (part_ == path_ || rename(part_.c_str(), path_.c_str()) == 0);
  if (whole) return;
  int problem = errno;
  if (part_ != path_) unlink(part_.c_str());
  errno = problem;
  fail();
}

}  // namespace lamina
