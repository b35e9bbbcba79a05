// libFuzzer's door: the first byte chooses whether the rest is a file or bare records.
//   cmake -DLAMINA_FUZZ=ON -DCMAKE_C_COMPILER=clang-14 -DCMAKE_CXX_COMPILER=clang++-14 …; bin/fuzz_profile CORPUS
#include <cstring>
#include <fstream>

#include "fuzz_profile.h"
#include "fuzz_seed.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  std::span<const uint8_t> rest(data + 1, size - 1);
  if (data[0] % 8 == 0) {
    lamina::read_as_profile(rest);
  } else {
    lamina::read_as_records(rest);
  }
  return 0;
}

// Without a corpus it begins with the seeds.
extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);
extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned int seed) {
  static const std::string kSeeds[] = {'\0' + lamina::seed_profile(), '\1' + lamina::seed_records()};
  const std::string& begin = kSeeds[seed % 2];
  if (size < 16 && begin.size() <= max_size) {
    memcpy(data, begin.data(), begin.size());
    size = begin.size();
  }
  return LLVMFuzzerMutate(data, size, max_size);
}
