// The chunks of a file, read and decompressed by a second thread while the first works on those before.
#pragma once

#include <array>
#include <condition_variable>
#include <cstddef>
#include <exception>
#include <mutex>
#include <thread>

#include "report/records/profile_file.h"

namespace lamina {

// While it lives nobody else uses the file; once next() has given null, the file's account of itself is whole.
class ReadAhead {
 public:
  explicit ReadAhead(ProfileFile& file);
  ~ReadAhead();

  // The next chunk, which holds until the next call; null at the end. Throws what reading threw.
  const Chunk* next();

 private:
  static constexpr size_t kChunks = 8;  // of up to kMaxChunkBytes each

  void read();

  ProfileFile& file_;
  std::array<Chunk, kChunks> chunks_;
  std::mutex mutex_;
  std::condition_variable changed_;
  size_t read_ = 0;   // chunks so far
  size_t given_ = 0;  // ... of which the last may still be in use
  bool at_end_ = false;
  bool abandoned_ = false;
  std::exception_ptr problem_;
  std::thread thread_;
};

}  // namespace lamina
