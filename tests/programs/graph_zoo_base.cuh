// What the cases of graph_zoo share: error checks, the kernels, NVTX ranges, expectations and shorthands for graphs.
#ifndef LAMINA_TESTS_PROGRAMS_GRAPH_ZOO_BASE_CUH_
#define LAMINA_TESTS_PROGRAMS_GRAPH_ZOO_BASE_CUH_

#include <cuda.h>
#include <cuda_runtime.h>
#include <nvtx3/nvToolsExt.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <future>
#include <map>
#include <mutex>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

// Each kernel has a slot among the counters, which is the number in its name, 100 * case + i.
constexpr int kSlots = 1600;
constexpr int kMaxDevices = 2;
constexpr unsigned kThreads = 32;

// ---- Errors ----

// The device or driver cannot do what the case needs: the case is skipped, the program goes on.
struct Unsupported : std::runtime_error {
  using std::runtime_error::runtime_error;
};

[[noreturn]] inline void Die(const char* file, int line, const char* what, const char* error) {
  std::fprintf(stderr, "%s:%d: %s: %s\n", file, line, what, error);
  std::_Exit(1);  // other threads may be in the middle of CUDA calls: no destructors, no exit handlers
}

inline void CheckResult(cudaError_t result, const char* what, const char* file, int line) {
  if (result == cudaSuccess) return;
  if (result == cudaErrorNotSupported || result == cudaErrorCallRequiresNewerDriver) {
    (void)cudaGetLastError();
    throw Unsupported(std::string(what) + ": " + cudaGetErrorString(result));
  }
  Die(file, line, what, cudaGetErrorString(result));
}

inline void CheckResult(CUresult result, const char* what, const char* file, int line) {
  if (result == CUDA_SUCCESS) return;
  const char* text = nullptr;
  if (cuGetErrorString(result, &text) != CUDA_SUCCESS || !text) text = "unknown error of the driver";
  if (result == CUDA_ERROR_NOT_SUPPORTED) throw Unsupported(std::string(what) + ": " + text);
  Die(file, line, what, text);
}

#define CHECK(call) CheckResult((call), #call, __FILE__, __LINE__)
#define VERIFY(condition) ((condition) ? void() : Die(__FILE__, __LINE__, #condition, "is not so"))

// ---- Kernels ----

// Counts one execution and returns how many there were before. For one thread of the grid only.
__device__ inline int CountExecution(int* counters, int slot) { return atomicAdd(counters + slot, 1); }

__device__ inline bool IsFirstThread() { return blockIdx.x == 0 && threadIdx.x == 0; }

// A microsecond or so of dependent arithmetic, which the compiler must not drop.
__device__ inline void Spin() {
  unsigned x = threadIdx.x;
  for (int i = 0; i < 300; ++i) {
    x = x * 1664525u + 1013904223u;
    asm volatile("" : "+r"(x));
  }
}

template <int N>
__global__ void zoo_kernel(int* counters) {
  static_assert(N < kSlots, "no counter for this kernel");
  Spin();
  if (IsFirstThread()) CountExecution(counters, N);
}

// Sets a condition to a constant.
template <int N>
__global__ void zoo_assign(int* counters, cudaGraphConditionalHandle condition, unsigned value) {
  static_assert(N < kSlots, "no counter for this kernel");
  Spin();
  if (!IsFirstThread()) return;
  CountExecution(counters, N);
  cudaGraphSetConditional(condition, value);
}

// Sets a condition to 0, 1, … length - 1, 0, … in successive executions.
template <int N>
__global__ void zoo_cycle(int* counters, cudaGraphConditionalHandle condition, unsigned length) {
  static_assert(N < kSlots, "no counter for this kernel");
  Spin();
  if (!IsFirstThread()) return;
  const unsigned turn = static_cast<unsigned>(CountExecution(counters, N));
  cudaGraphSetConditional(condition, turn % length);
}

// For the body of a loop: ends it in every trips-th execution.
template <int N>
__global__ void zoo_repeat(int* counters, cudaGraphConditionalHandle condition, unsigned trips) {
  static_assert(N < kSlots, "no counter for this kernel");
  Spin();
  if (!IsFirstThread()) return;
  const unsigned turn = static_cast<unsigned>(CountExecution(counters, N)) + 1;
  cudaGraphSetConditional(condition, turn % trips != 0 ? 1 : 0);
}

struct Kernel {
  const void* function;
  int slot;
  std::string name;  // as it stands in the demangled name of a kernel record
  cudaGraphConditionalHandle condition = 0;
  unsigned value = 0;
};

template <int N>
Kernel Zoo() {
  return {reinterpret_cast<const void*>(&zoo_kernel<N>), N, "zoo_kernel<" + std::to_string(N) + ">"};
}

template <int... N>
std::vector<Kernel> Zoos() {
  return {Zoo<N>()...};
}

template <int N>
Kernel Assign(cudaGraphConditionalHandle condition, unsigned value) {
  return {reinterpret_cast<const void*>(&zoo_assign<N>), N, "zoo_assign<" + std::to_string(N) + ">", condition, value};
}

template <int N>
Kernel Cycle(cudaGraphConditionalHandle condition, unsigned length) {
  return {reinterpret_cast<const void*>(&zoo_cycle<N>), N, "zoo_cycle<" + std::to_string(N) + ">", condition, length};
}

template <int N>
Kernel Repeat(cudaGraphConditionalHandle condition, unsigned trips) {
  return {reinterpret_cast<const void*>(&zoo_repeat<N>), N, "zoo_repeat<" + std::to_string(N) + ">", condition, trips};
}

// The counters of each device that is in use, else null.
inline int* g_counters[kMaxDevices] = {};

inline int* Counters() {
  int device = 0;
  CHECK(cudaGetDevice(&device));
  return g_counters[device];
}

// The arguments of a launch. A plain zoo_kernel takes the first only: the others are not looked at then.
class Arguments {
 public:
  explicit Arguments(const Kernel& kernel)
      : counters_(Counters()), condition_(kernel.condition), value_(kernel.value) {}
  Arguments(const Arguments&) = delete;
  Arguments& operator=(const Arguments&) = delete;

  void** data() { return pointers_; }

 private:
  int* counters_;
  cudaGraphConditionalHandle condition_;
  unsigned value_;
  void* pointers_[3] = {&counters_, &condition_, &value_};
};

inline void Launch(const Kernel& kernel, cudaStream_t stream) {
  Arguments arguments(kernel);
  CHECK(cudaLaunchKernel(kernel.function, dim3(1), dim3(kThreads), arguments.data(), 0, stream));
  CHECK(cudaGetLastError());
}

inline CUfunction DriverFunction(const Kernel& kernel) {
  cudaFunction_t function = nullptr;
  CHECK(cudaGetFuncBySymbol(&function, kernel.function));
  return function;
}

// ---- NVTX ----

// Opens a range for each part of a path such as "model/layer0", as the modules of a model would.
class Range {
 public:
  explicit Range(const std::string& path) {
    for (size_t begin = 0; begin <= path.size(); ++depth_) {
      const size_t end = std::min(path.find('/', begin), path.size());
      nvtxRangePushA(path.substr(begin, end - begin).c_str());
      begin = end + 1;
    }
  }
  ~Range() {
    while (depth_-- > 0) nvtxRangePop();
  }
  Range(const Range&) = delete;
  Range& operator=(const Range&) = delete;

 private:
  int depth_ = 0;
};

// One launch under the ranges of a path.
inline void LaunchUnder(const std::string& path, const Kernel& kernel, cudaStream_t stream,
                        void (*launch)(const Kernel&, cudaStream_t) = Launch) {
  const Range range(path);
  launch(kernel, stream);
}

// ---- Expectations ----

// What the profiler must say: how often a kernel, copy or memset ran in a phase under a path of ranges.
class Expectations {
 public:
  struct Row {
    std::string case_name, phase, path, kind, name;
    auto Key() const { return std::tie(case_name, phase, path, kind, name); }
    bool operator<(const Row& other) const { return Key() < other.Key(); }
  };

  void Add(const Row& row, long count) {
    std::lock_guard<std::mutex> lock(mutex_);
    rows_[row] += count;
  }
  // Besides the row, how often a counter must have been raised: what proves that the rows are right.
  void AddKernel(const Row& row, const Kernel& kernel, long count) {
    Add(row, count);
    std::lock_guard<std::mutex> lock(mutex_);
    auto& [name, executions] = slots_[kernel.slot];
    if (name.empty()) name = kernel.name;
    VERIFY(name == kernel.name);  // two kernels with one counter
    executions += count;
  }
  void Skip(const std::string& case_name, const std::string& reason) { skipped_[case_name] = reason; }

  void Print() const;
  bool Matches(const std::vector<long>& executions) const;

 private:
  std::mutex mutex_;
  std::map<Row, long> rows_;
  std::map<int, std::pair<std::string, long>> slots_;
  std::map<std::string, std::string> skipped_;
};

inline std::string Quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += static_cast<unsigned char>(c) < ' ' ? ' ' : c;
  }
  return out + '"';
}

inline void Expectations::Print() const {
  for (const auto& [row, count] : rows_) {
    std::string path;
    for (const char c : Quoted(row.path)) path += c == '/' ? std::string("\",\"") : std::string(1, c);
    std::printf("{\"case\":%s,\"phase\":%s,\"path\":[%s],\"kind\":%s,\"name\":%s,\"count\":%ld}\n",
                Quoted(row.case_name).c_str(), Quoted(row.phase).c_str(), path.c_str(), Quoted(row.kind).c_str(),
                Quoted(row.name).c_str(), count);
  }
  for (const auto& [case_name, reason] : skipped_) {
    std::printf("{\"case\":%s,\"skipped\":%s}\n", Quoted(case_name).c_str(), Quoted(reason).c_str());
  }
}

inline bool Expectations::Matches(const std::vector<long>& executions) const {
  bool matches = true;
  for (int slot = 0; slot < kSlots; ++slot) {
    const auto found = slots_.find(slot);
    const long expected = found == slots_.end() ? 0 : found->second.second;
    if (executions[slot] == expected) continue;
    matches = false;
    const std::string name = found == slots_.end() ? "kernel " + std::to_string(slot) : found->second.first;
    std::fprintf(stderr, "graph_zoo: %s ran %ld times, expected %ld\n", name.c_str(), executions[slot], expected);
  }
  return matches;
}

// ---- Owners of handles ----

template <typename Handle, cudaError_t (*Destroy)(Handle)>
class Owned {
 public:
  Owned() = default;
  explicit Owned(Handle handle) : handle_(handle) {}
  Owned(Owned&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  Owned& operator=(Owned&& other) {
    Reset();
    handle_ = std::exchange(other.handle_, nullptr);
    return *this;
  }
  ~Owned() {
    if (handle_) (void)Destroy(handle_);
  }
  void Reset() {
    if (handle_) CHECK(Destroy(std::exchange(handle_, nullptr)));
  }
  Handle get() const { return handle_; }
  operator Handle() const { return handle_; }

 private:
  Handle handle_ = nullptr;
};

using Stream = Owned<cudaStream_t, cudaStreamDestroy>;
using Event = Owned<cudaEvent_t, cudaEventDestroy>;
using Graph = Owned<cudaGraph_t, cudaGraphDestroy>;
using Exec = Owned<cudaGraphExec_t, cudaGraphExecDestroy>;

inline Stream MakeStream() {
  cudaStream_t stream = nullptr;
  CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  return Stream(stream);
}

inline Event MakeEvent() {
  cudaEvent_t event = nullptr;
  CHECK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
  return Event(event);
}

inline Graph MakeGraph() {
  cudaGraph_t graph = nullptr;
  CHECK(cudaGraphCreate(&graph, 0));
  return Graph(graph);
}

inline Exec Instantiate(cudaGraph_t graph) {
  cudaGraphExec_t exec = nullptr;
  CHECK(cudaGraphInstantiate(&exec, graph, 0));
  return Exec(exec);
}

template <typename Work>
Graph Capture(cudaStream_t stream, Work work, cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal) {
  cudaGraph_t graph = nullptr;
  CHECK(cudaStreamBeginCapture(stream, mode));
  work();
  CHECK(cudaStreamEndCapture(stream, &graph));
  return Graph(graph);
}

// Captures into a graph that exists already, such as the body of a conditional node.
template <typename Work>
void CaptureInto(cudaGraph_t graph, cudaStream_t stream, Work work) {
  cudaGraph_t captured = nullptr;
  CHECK(cudaStreamBeginCaptureToGraph(stream, graph, nullptr, nullptr, 0, cudaStreamCaptureModeGlobal));
  work();
  CHECK(cudaStreamEndCapture(stream, &captured));
  VERIFY(captured == graph);
}

// ---- Nodes ----

using Node = cudaGraphNode_t;
using Nodes = std::vector<Node>;

inline cudaKernelNodeParams NodeParams(const Kernel& kernel, Arguments& arguments) {
  cudaKernelNodeParams params = {};
  params.func = const_cast<void*>(kernel.function);
  params.gridDim = dim3(1);
  params.blockDim = dim3(kThreads);
  params.kernelParams = arguments.data();
  return params;
}

inline Node Add(cudaGraph_t graph, const Kernel& kernel, const Nodes& after = {}) {
  Node node = nullptr;
  Arguments arguments(kernel);
  const cudaKernelNodeParams params = NodeParams(kernel, arguments);
  CHECK(cudaGraphAddKernelNode(&node, graph, after.data(), after.size(), &params));
  return node;
}

inline Node AddUnder(const std::string& path, cudaGraph_t graph, const Kernel& kernel, const Nodes& after = {}) {
  const Range range(path);
  return Add(graph, kernel, after);
}

// Adds kernels one after the other and returns the last.
inline Node AddChain(cudaGraph_t graph, const std::vector<Kernel>& kernels, Nodes after = {}) {
  for (const Kernel& kernel : kernels) after = {Add(graph, kernel, after)};
  return after.front();
}

inline Node AddChainUnder(const std::string& path, cudaGraph_t graph, const std::vector<Kernel>& kernels,
                          const Nodes& after = {}) {
  const Range range(path);
  return AddChain(graph, kernels, after);
}

// The child is copied: the caller keeps its own.
inline Node AddChild(cudaGraph_t graph, cudaGraph_t child, const Nodes& after = {}) {
  Node node = nullptr;
  CHECK(cudaGraphAddChildGraphNode(&node, graph, after.data(), after.size(), child));
  return node;
}

struct Conditional {
  Node node;
  std::vector<cudaGraph_t> bodies;  // owned by the node
};

inline cudaGraphConditionalHandle MakeCondition(cudaGraph_t graph, unsigned initial) {
  cudaGraphConditionalHandle condition = 0;
  CHECK(cudaGraphConditionalHandleCreate(&condition, graph, initial, cudaGraphCondAssignDefault));
  return condition;
}

inline Conditional AddConditional(cudaGraph_t graph, cudaGraphConditionalNodeType type,
                                  cudaGraphConditionalHandle condition, unsigned bodies, const Nodes& after = {}) {
  Conditional added = {};
  cudaGraphNodeParams params = {};
  params.type = cudaGraphNodeTypeConditional;
  params.conditional.handle = condition;
  params.conditional.type = type;
  params.conditional.size = bodies;
  CHECK(cudaGraphAddNode(&added.node, graph, after.data(), nullptr, after.size(), &params));
  added.bodies.assign(params.conditional.phGraph_out, params.conditional.phGraph_out + bodies);
  return added;
}

// ---- Cases ----

// A case's view of the program. Its name is the outermost range of all that it does.
class Case {
 public:
  Case(std::string name, int loops, Expectations& expectations)
      : name_(std::move(name)), loops_(loops), expectations_(expectations) {}

  int loops() const { return loops_; }

  // One replay in a phase of its own, not waited for.
  void LaunchGraph(cudaGraphExec_t exec, cudaStream_t stream, const std::string& phase = "replay") const {
    Range range("phase:" + phase);
    CHECK(cudaGraphLaunch(exec, stream));
  }

  void Replay(cudaGraphExec_t exec, cudaStream_t stream, int times = 1, const std::string& phase = "replay") const {
    for (int i = 0; i < times; ++i) {
      LaunchGraph(exec, stream, phase);
      CHECK(cudaStreamSynchronize(stream));
    }
  }

  // The path is what stands under the case's own range, "" for nothing.
  void Expect(const std::string& path, const Kernel& kernel, long count, const std::string& phase = "replay") {
    expectations_.AddKernel({name_, phase, FullPath(path), "kernel", kernel.name}, kernel, count);
  }
  void Expect(const std::string& path, const std::vector<Kernel>& kernels, long count,
              const std::string& phase = "replay") {
    for (const Kernel& kernel : kernels) Expect(path, kernel, count, phase);
  }
  void ExpectCopy(const std::string& path, const std::string& direction, long count,
                  const std::string& phase = "replay") {
    expectations_.Add({name_, phase, FullPath(path), "memcpy", "Memcpy " + direction}, count);
  }
  void ExpectMemset(const std::string& path, long count, const std::string& phase = "replay") {
    expectations_.Add({name_, phase, FullPath(path), "memset", "Memset"}, count);
  }

  void ExpectDriverKernel(const std::string& path, const std::string& kernel, long count) {
    expectations_.Add({name_, "replay", FullPath(path), "kernel", kernel}, count);
  }

  // A thread of the case, under the case's range too. What it throws comes out of get().
  template <typename Work>
  std::future<void> InThread(Work work) const {
    return std::async(std::launch::async, [name = name_, work] {
      Range range(name);
      work();
    });
  }

 private:
  std::string FullPath(const std::string& path) const { return path.empty() ? name_ : name_ + "/" + path; }

  std::string name_;
  int loops_;
  Expectations& expectations_;
};

#endif  // LAMINA_TESTS_PROGRAMS_GRAPH_ZOO_BASE_CUH_
