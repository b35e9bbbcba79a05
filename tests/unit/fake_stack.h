// Stacks in memory of their own, with return addresses at places of the test's choice.
#pragma once

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <array>
#include <utility>
#include <vector>

#include "inject/saved_return.h"

namespace lamina {

class FakeStack {
 public:
  // {place, return address}, innermost first.
  using Frames = std::vector<std::pair<size_t, uintptr_t>>;

  std::vector<SavedReturn> set(const Frames& frames) {
    std::vector<SavedReturn> saved;
    for (auto [place, address] : frames) {
      words_[place] = address;
      saved.push_back({&words_[place], address});
    }
    return saved;
  }
  void wipe(const Frames& frames) {
    for (auto [place, address] : frames) words_[place] = 0;
  }
  const uintptr_t* at(size_t place) const { return &words_[place]; }

 private:
  std::array<uintptr_t, 1 << 16> words_{};
};

// A stack with a page for each frame, all with the same return address. Pages can go, as those of a fiber do.
class PagedStack {
 public:
  explicit PagedStack(size_t frames) : size_(frames * kPage) {
    void* memory = mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    pages_ = static_cast<char*>(memory);
    for (size_t i = 0; i < frames; ++i) frames_.push_back({&word(i), word(i) = 1000});
  }
  ~PagedStack() { munmap(pages_, size_); }
  PagedStack(const PagedStack&) = delete;
  PagedStack& operator=(const PagedStack&) = delete;

  const std::vector<SavedReturn>& frames() const { return frames_; }
  // Nothing from this frame on may be read.
  void hide_from(size_t frame) { EXPECT_EQ(mprotect(pages_ + frame * kPage, size_ - frame * kPage, PROT_NONE), 0); }
  void show() { EXPECT_EQ(mprotect(pages_, size_, PROT_READ | PROT_WRITE), 0); }
  uintptr_t& word(size_t frame) { return *reinterpret_cast<uintptr_t*>(pages_ + frame * kPage); }

 private:
  static constexpr size_t kPage = 4096;
  char* pages_;
  size_t size_;
  std::vector<SavedReturn> frames_;
};

}  // namespace lamina
