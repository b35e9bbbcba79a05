#include "inject/python_end.h"

#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>

#include "inject/clock.h"
#include "inject/log.h"
#include "inject/python_frames.h"

namespace lamina {
namespace {

// PyMethodDef (methodobject.h)
struct Method {
  const char* name;
  void* (*function)(void* self, void* arguments);
  int flags;
  const char* text;
};
constexpr int kNoArguments = 4;  // METH_NOARGS

// Of Python's stable ABI. All are looked up before they are needed: who has the GIL must not wait for the loader's lock.
struct Python {
  int (*add_pending_call)(int (*call)(void*), void* argument);
  void* (*import)(const char* module);
  void* (*new_function)(Method* method, void* self, void* module);
  void* (*call_method)(void* object, const char* name, const char* format, ...);
  void* (*build_value)(const char* format, ...);
  void (*release)(void* object);
  void (*clear_error)();

  bool find() {
    auto look_up = [](auto& function, const char* name) {
      function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(RTLD_DEFAULT, name));
      return function != nullptr;
    };
    return look_up(add_pending_call, "Py_AddPendingCall") && look_up(import, "PyImport_ImportModule") &&
           look_up(new_function, "PyCFunction_NewEx") && look_up(call_method, "PyObject_CallMethod") &&
           look_up(build_value, "Py_BuildValue") && look_up(release, "Py_DecRef") && look_up(clear_error, "PyErr_Clear");
  }
};

Python python;
PythonEnd* watched = nullptr;

}  // namespace

// Either the count is seen by the end, which waits then, or the end by this thread, which does not read.
PythonEnd::Reader::Reader(PythonEnd* end, const void* thread) {
  if (!end) return;
  readers_ = &end->readers_[PythonFrame::mix(reinterpret_cast<uintptr_t>(thread)) % end->readers_.size()].count;
  readers_->fetch_add(1);
  pthread_t ends = end->ends_.load();
  may_read_ = ends == 0 || ends == pthread_self();
}

PythonEnd::Reader::~Reader() {
  if (readers_) readers_->fetch_sub(1, std::memory_order_release);
}

// A pending call needs no GIL, and comes at the latest when Python ends, right before its exit handlers.
void PythonEnd::watch() {
  if (asked_ || !python.find()) return;
  watched = this;
  asked_ = python.add_pending_call(ask, nullptr) == 0;
}

// With the GIL.
int PythonEnd::ask(void*) {
  static Method method{"lamina_end", on_end, kNoArguments, nullptr};
  void* module = python.import("atexit");
  void* function = module ? python.new_function(&method, nullptr, nullptr) : nullptr;
  void* registered = function ? python.call_method(module, "register", "O", function) : nullptr;
  for (void* object : {module, function, registered}) {
    if (object) python.release(object);
  }
  if (!registered) python.clear_error();
  return 0;
}

void* PythonEnd::on_end(void*, void*) {
  watched->wait_for_readers();
  return python.build_value("");  // None
}

// Readers take no lock of Python's. A thread of the program's may still hold them up: there is a limit to that.
void PythonEnd::wait_for_readers() {
  constexpr uint64_t kDeadlineNs = 5'000'000'000;
  constexpr useconds_t kPauseUs = 50;
  ends_.store(pthread_self());
  uint64_t begin = host_now();
  auto is_read = [this] { return std::ranges::any_of(readers_, [](const Readers& readers) { return readers.count.load() != 0; }); };
  while (is_read() && host_now() - begin < kDeadlineNs) usleep(kPauseUs);
  log_debug("no Python frames of other threads from now on: Python ends");
}

void PythonEnd::forget_readers() {
  for (Readers& readers : readers_) readers.count.store(0);
}

}  // namespace lamina
