// A long result that is written while it is made.
#pragma once

#include <cstdio>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace lamina {

// Standard output (`-`) or a file, which gets its name when it is whole; gzip when the name ends in .gz. What is not
// finished is removed.
class OutputStream {
 public:
  // Throws UsageError when the file exists and `force` is not given; as all of it std::runtime_error when the system fails.
  OutputStream(std::string path, bool force);
  ~OutputStream();
  OutputStream(const OutputStream&) = delete;

  void write(std::string_view text);
  void finish();

 private:
  struct Deflater;
  void put(std::string_view bytes);
  void fail() const;

  std::string path_;
  std::string part_;  // name of the file until it is whole
  FILE* file_ = nullptr;
  std::unique_ptr<Deflater> deflater_;
};

}  // namespace lamina
