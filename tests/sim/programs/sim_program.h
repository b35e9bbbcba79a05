// What the programs for the simulated device share. They say what a profiler must find, one JSON object a line on
// stdout: {"phase":…,"path":[…],"kind":"kernel","name":…,"count":…}. A kernel's name is that of its function, without
// arguments. Eager launches note themselves under the ranges open; what a graph does is said by expect().
#pragma once

#include <cuda.h>
#include <cudaProfiler.h>
#include <nvtx3/nvToolsExt.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "../sim.h"

using Path = std::vector<std::string>;

#define CHECK(call) check((call), #call, __LINE__)
inline void check(CUresult result, const char* what, int line) {
  if (result == CUDA_SUCCESS) return;
  fprintf(stderr, "line %d: %s: error %d\n", line, what, static_cast<int>(result));
  _exit(1);
}

// ---- expectations

class Expectations {
 public:
  void add(const std::string& phase, const Path& path, const char* kind, const std::string& name, long count) {
    std::lock_guard lock(mutex_);
    rows_[{phase, path, kind, name}] += count;
  }
  void print(const char* process = nullptr) {
    std::lock_guard lock(mutex_);
    for (const auto& [key, count] : rows_) {
      const auto& [phase, path, kind, name] = key;
      printf("{%s\"phase\":%s,\"path\":[", process ? ("\"process\":" + quoted(process) + ",").c_str() : "",
             quoted(phase).c_str());
      for (size_t i = 0; i < path.size(); ++i) printf("%s%s", i ? "," : "", quoted(path[i]).c_str());
      printf("],\"kind\":\"%s\",\"name\":%s,\"count\":%ld}\n", kind.c_str(), quoted(name).c_str(), count);
    }
    fflush(stdout);
    rows_.clear();
  }

 private:
  static std::string quoted(const std::string& text) {
    std::string out = "\"";
    for (char c : text) out += c == '"' || c == '\\' ? std::string{'\\', c} : std::string{c};
    return out + '"';
  }
  std::mutex mutex_;
  std::map<std::tuple<std::string, Path, std::string, std::string>, long> rows_;
};

inline Expectations expectations;
// The ranges open on this thread, and the phase that its launches belong to.
inline thread_local Path open_path;
inline std::string process_phase = "all";
inline thread_local std::string own_phase;
inline std::string current_phase() { return own_phase.empty() ? process_phase : own_phase; }

inline void expect(const std::string& phase, const Path& path, const std::string& name, long count = 1,
                   const char* kind = "kernel") {
  expectations.add(phase, path, kind, name, count);
}
inline void expect_here(const std::string& name, const char* kind = "kernel") {
  expect(current_phase(), open_path, name, 1, kind);
}

// ---- ranges

class Range {
 public:
  explicit Range(const std::string& name) {
    nvtxRangePushA(name.c_str());
    open_path.push_back(name);
  }
  ~Range() {
    nvtxRangePop();
    open_path.pop_back();
  }
  Range(const Range&) = delete;
  Range& operator=(const Range&) = delete;
};

// A phase is no part of the path. One that is not `own` holds for the other threads too.
class Phase {
 public:
  explicit Phase(const std::string& name, bool own = false) : own_(own) {
    nvtxRangePushA(("phase:" + name).c_str());
    own_phase = name;
    if (!own_) process_phase = name;
  }
  ~Phase() {
    nvtxRangePop();
    own_phase.clear();
    if (!own_) process_phase = "(none)";
  }
  Phase(const Phase&) = delete;
  Phase& operator=(const Phase&) = delete;

 private:
  bool own_;
};

// ---- CUDA

inline void start_cuda() {
  CUcontext context;
  CHECK(cuInit(0));
  CHECK(cuDevicePrimaryCtxRetain(&context, 0));
  CHECK(cuCtxSetCurrent(context));
}

inline CUmodule main_module() {
  static CUmodule module = [] {
    CUmodule loaded;
    CHECK(cuModuleLoadData(&loaded, ""));
    return loaded;
  }();
  return module;
}

// A function NAME(float*), under its mangled name.
inline CUfunction load_function(CUmodule module, const std::string& name) {
  CUfunction function;
  CHECK(cuModuleGetFunction(&function, module, ("_Z" + std::to_string(name.size()) + name + "Pf").c_str()));
  return function;
}

inline CUfunction function(const std::string& name) {
  static auto& mutex = *new std::mutex;  // never destroyed: threads go on while the process exits
  static auto& known = *new std::map<std::string, CUfunction>;
  std::lock_guard lock(mutex);
  CUfunction& found = known[name];
  if (!found) found = load_function(main_module(), name);
  return found;
}

inline CUstream make_stream() {
  CUstream stream;
  CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  return stream;
}

// Inlined, so that it is no frame of call stacks.
[[gnu::always_inline]] inline void launch_only(const std::string& name, CUstream stream = nullptr) {
  CHECK(cuLaunchKernel(function(name), 1, 1, 1, 32, 1, 1, 0, stream, nullptr, nullptr));
}

inline void launch(const std::string& name, CUstream stream = nullptr) {
  launch_only(name, stream);
  expect_here(name);
}
