// Python's end frees the states, frames and code of its other threads, those too that are in C meanwhile and launch. So it is
// made to wait for the threads that read them: an exit handler of Python's, which comes before anything is freed.
#pragma once

#include <pthread.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace lamina {

class PythonEnd {
 public:
  // Around all that the calling thread reads of its frames and their code.
  class Reader {
   public:
    // `thread`: something of the calling thread's own. `end` null: there is nothing to be read.
    Reader(PythonEnd* end, const void* thread);
    ~Reader();
    Reader(const Reader&) = delete;
    Reader& operator=(const Reader&) = delete;

    // False once Python ends, but on the thread that ends it: its own frames stay until Python says that it is finalizing.
    bool may_read() const { return may_read_; }

   private:
    std::atomic<uint32_t>* readers_ = nullptr;
    bool may_read_ = false;
  };

  // Asks the interpreter for its end, which must have been found. To be called again from time to time: it may have no room
  // for the question. Takes the lock of the dynamic loader.
  void watch();

  // In the child of a fork: the threads that were reading are not there.
  void forget_readers();

 private:
  // Each thread counts itself in one of several places, so that they seldom get into each other's way.
  struct alignas(64) Readers {
    std::atomic<uint32_t> count{0};
  };

  static int ask(void* end);
  static void* on_end(void* self, void* arguments);
  void wait_for_readers();

  std::array<Readers, 64> readers_;
  std::atomic<pthread_t> ends_{0};  // the thread that ends Python
  bool asked_ = false;              // the writer's own, after start
};

}  // namespace lamina
