// Cases of graph_zoo without a graph: each call that launches a kernel, copy or memset; streams, threads, devices.
#ifndef LAMINA_TESTS_PROGRAMS_GRAPH_ZOO_EAGER_CUH_
#define LAMINA_TESTS_PROGRAMS_GRAPH_ZOO_EAGER_CUH_

#include "graph_zoo_base.cuh"

// Small enough for each copy of pageable memory to be one record too.
constexpr size_t kBytes = 4096;

// Two buffers on the device and two page-locked ones on the host.
struct Buffers {
  Buffers() {
    for (char** buffer : {&device_a, &device_b}) CHECK(cudaMalloc(buffer, kBytes));
    for (char** buffer : {&host_in, &host_out}) CHECK(cudaMallocHost(buffer, kBytes));
    std::memset(host_in, 'i', kBytes);
    std::memset(host_out, 'o', kBytes);
  }
  ~Buffers() {
    for (char* buffer : {device_a, device_b}) (void)cudaFree(buffer);
    for (char* buffer : {host_in, host_out}) (void)cudaFreeHost(buffer);
  }
  Buffers(const Buffers&) = delete;
  Buffers& operator=(const Buffers&) = delete;

  bool HostOutIs(char value) const { return std::count(host_out, host_out + kBytes, value) == long{kBytes}; }

  char* device_a = nullptr;
  char* device_b = nullptr;
  char* host_in = nullptr;
  char* host_out = nullptr;
};

// ---- One launch by each call, eager or captured ----

inline void LaunchExC(const Kernel& kernel, cudaStream_t stream) {
  Arguments arguments(kernel);
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(1);
  config.blockDim = dim3(kThreads);
  config.stream = stream;
  CHECK(cudaLaunchKernelExC(&config, kernel.function, arguments.data()));
}

// May start before the kernel ahead of it in the stream has ended.
inline void LaunchProgrammatic(const Kernel& kernel, cudaStream_t stream) {
  Arguments arguments(kernel);
  cudaLaunchAttribute attribute = {};
  attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attribute.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(1);
  config.blockDim = dim3(kThreads);
  config.stream = stream;
  config.attrs = &attribute;
  config.numAttrs = 1;
  CHECK(cudaLaunchKernelExC(&config, kernel.function, arguments.data()));
}

inline void LaunchDriver(const Kernel& kernel, cudaStream_t stream) {
  Arguments arguments(kernel);
  CHECK(cuLaunchKernel(DriverFunction(kernel), 1, 1, 1, kThreads, 1, 1, 0, stream, arguments.data(), nullptr));
}

inline void LaunchDriverEx(const Kernel& kernel, cudaStream_t stream) {
  Arguments arguments(kernel);
  CUlaunchConfig config = {};
  config.gridDimX = config.gridDimY = config.gridDimZ = 1;
  config.blockDimX = kThreads;
  config.blockDimY = config.blockDimZ = 1;
  config.hStream = stream;
  CHECK(cuLaunchKernelEx(&config, DriverFunction(kernel), arguments.data(), nullptr));
}

inline bool HasCooperativeLaunch() {
  int device = 0, has = 0;
  CHECK(cudaGetDevice(&device));
  CHECK(cudaDeviceGetAttribute(&has, cudaDevAttrCooperativeLaunch, device));
  return has != 0;
}

// Two blocks fit on any device.
inline void LaunchCooperative(const Kernel& kernel, cudaStream_t stream) {
  Arguments arguments(kernel);
  CHECK(cudaLaunchCooperativeKernel(kernel.function, dim3(2), dim3(kThreads), arguments.data(), 0, stream));
}

inline void LaunchDriverCooperative(const Kernel& kernel, cudaStream_t stream) {
  Arguments arguments(kernel);
  CHECK(cuLaunchCooperativeKernel(DriverFunction(kernel), 2, 1, 1, kThreads, 1, 1, 0, stream, arguments.data()));
}

// ---- Cases ----

inline void EagerLaunches(Case& c) {
  const Stream stream = MakeStream();
  const Range phase("phase:eager");
  const auto launch = [&](const char* layer, auto how, const Kernel& kernel) {
    const Range range(layer);
    how(kernel, stream);
    c.Expect(layer, kernel, 1, "eager");
  };
  {
    const Range range("model/chevrons");
    zoo_kernel<100><<<1, kThreads, 0, stream>>>(Counters());
    CHECK(cudaGetLastError());
    c.Expect("model/chevrons", Zoo<100>(), 1, "eager");
  }
  launch("model/runtime", Launch, Zoo<101>());
  launch("model/runtime_ex", LaunchExC, Zoo<102>());
  launch("model/driver", LaunchDriver, Zoo<103>());
  launch("model/driver_ex", LaunchDriverEx, Zoo<104>());
  if (HasCooperativeLaunch()) {
    launch("model/cooperative", LaunchCooperative, Zoo<105>());
    launch("model/driver_cooperative", LaunchDriverCooperative, Zoo<106>());
  }
  CHECK(cudaStreamSynchronize(stream));
}

// Apart from the other launches: only chips from compute capability 9.0 on overlap kernels so.
inline void EagerProgrammatic(Case& c) {
  const Stream stream = MakeStream();
  const Range phase("phase:eager");
  for (int i = 0; i < 2; ++i) {
    const Range range("first");
    Launch(Zoo<110>(), stream);
    const Range inner("second");
    LaunchProgrammatic(Zoo<111>(), stream);
  }
  CHECK(cudaStreamSynchronize(stream));
  c.Expect("first", Zoo<110>(), 2, "eager");
  c.Expect("first/second", Zoo<111>(), 2, "eager");
}

// Two streams of the program's own and the two default ones, a launch on each in turn.
inline void EagerStreams(Case& c) {
  const Stream stream_a = MakeStream();
  const Stream stream_b = MakeStream();
  const Range phase("phase:eager");
  for (int i = 0; i < 3; ++i) {
    LaunchUnder("stream_a", Zoo<120>(), stream_a);
    LaunchUnder("stream_b", Zoo<121>(), stream_b);
    LaunchUnder("per_thread", Zoo<122>(), cudaStreamPerThread);
    LaunchUnder("legacy", Zoo<123>(), cudaStreamLegacy);
    LaunchUnder("null", Zoo<124>(), nullptr);
  }
  CHECK(cudaDeviceSynchronize());
  c.Expect("stream_a", Zoo<120>(), 3, "eager");
  c.Expect("stream_b", Zoo<121>(), 3, "eager");
  c.Expect("per_thread", Zoo<122>(), 3, "eager");
  c.Expect("legacy", Zoo<123>(), 3, "eager");
  c.Expect("null", Zoo<124>(), 3, "eager");
}

// Two threads launch the same kernel and one of their own, at the same time, under ranges of their own.
inline void EagerThreads(Case& c) {
  const auto work = [](const char* layer, const Kernel& own) {
    const Range phase("phase:eager");
    const Stream stream = MakeStream();
    for (int i = 0; i < 10; ++i) {
      const Range range(layer);
      Launch(Zoo<130>(), stream);
      const Range inner("own");
      Launch(own, stream);
    }
    CHECK(cudaStreamSynchronize(stream));
  };
  auto thread_a = c.InThread([&] { work("thread_a", Zoo<131>()); });
  auto thread_b = c.InThread([&] { work("thread_b", Zoo<132>()); });
  thread_a.get();
  thread_b.get();
  c.Expect("thread_a", Zoo<130>(), 10, "eager");
  c.Expect("thread_b", Zoo<130>(), 10, "eager");
  c.Expect("thread_a/own", Zoo<131>(), 10, "eager");
  c.Expect("thread_b/own", Zoo<132>(), 10, "eager");
}

inline void EagerCopies(Case& c) {
  const Buffers buffers;
  const Stream stream = MakeStream();
  std::vector<char> pageable(kBytes, 'p');
  const Range phase("phase:eager");
  {
    const Range range("async");
    CHECK(cudaMemcpyAsync(buffers.device_a, buffers.host_in, kBytes, cudaMemcpyHostToDevice, stream));
    CHECK(cudaMemcpyAsync(buffers.device_b, buffers.device_a, kBytes, cudaMemcpyDeviceToDevice, stream));
    CHECK(cudaMemcpyAsync(buffers.host_out, buffers.device_b, kBytes, cudaMemcpyDeviceToHost, stream));
    CHECK(cudaMemsetAsync(buffers.device_a, 0, kBytes, stream));
    CHECK(cudaStreamSynchronize(stream));
  }
  VERIFY(buffers.HostOutIs('i'));
  {
    const Range range("sync");
    CHECK(cudaMemset(buffers.device_a, 'm', kBytes));
    CHECK(cudaMemcpy(buffers.device_b, buffers.device_a, kBytes, cudaMemcpyDeviceToDevice));
    CHECK(cudaMemcpy(buffers.host_out, buffers.device_b, kBytes, cudaMemcpyDeviceToHost));
    CHECK(cudaMemcpy(buffers.device_a, pageable.data(), kBytes, cudaMemcpyHostToDevice));
    CHECK(cudaDeviceSynchronize());  // the last of them may still be on its way
  }
  VERIFY(buffers.HostOutIs('m'));
  {
    const Range range("driver");
    const auto device_a = reinterpret_cast<CUdeviceptr>(buffers.device_a);
    const auto device_b = reinterpret_cast<CUdeviceptr>(buffers.device_b);
    CHECK(cuMemcpyHtoDAsync(device_a, buffers.host_in, kBytes, stream));
    CHECK(cuMemcpyDtoDAsync(device_b, device_a, kBytes, stream));
    CHECK(cuMemcpyDtoHAsync(buffers.host_out, device_b, kBytes, stream));
    CHECK(cuMemsetD32Async(device_a, 7, kBytes / 4, stream));
    CHECK(cuMemsetD8Async(device_b, 7, kBytes, stream));
    CHECK(cudaStreamSynchronize(stream));
  }
  VERIFY(buffers.HostOutIs('i'));
  for (const char* layer : {"async", "sync", "driver"}) {
    for (const char* direction : {"HtoD", "DtoD", "DtoH"}) c.ExpectCopy(layer, direction, 1, "eager");
  }
  c.ExpectMemset("async", 1, "eager");
  c.ExpectMemset("sync", 1, "eager");
  c.ExpectMemset("driver", 2, "eager");
}

// Kernels on two devices in turn and a copy from one to the other. All it sets up counts as the case's own work.
inline void EagerTwoDevices(Case& c) {
  int devices = 0, peers = 0;
  CHECK(cudaGetDeviceCount(&devices));
  if (devices < 2) throw Unsupported("there is one device only");
  CHECK(cudaDeviceCanAccessPeer(&peers, 0, 1));
  char *on_0 = nullptr, *on_1 = nullptr;
  const Stream stream_0 = MakeStream();
  CHECK(cudaMalloc(&on_0, kBytes));

  CHECK(cudaSetDevice(1));
  const Stream stream_1 = MakeStream();
  const Range phase("phase:eager");
  CHECK(cudaMalloc(&on_1, kBytes));
  CHECK(cudaMalloc(&g_counters[1], kSlots * sizeof(int)));
  CHECK(cudaMemset(g_counters[1], 0, kSlots * sizeof(int)));
  c.ExpectMemset("", 1, "eager");
  CHECK(cudaDeviceSynchronize());
  for (int i = 0; i < 3; ++i) {
    CHECK(cudaSetDevice(0));
    LaunchUnder("device_0", Zoo<150>(), stream_0);
    CHECK(cudaSetDevice(1));
    LaunchUnder("device_1", Zoo<150>(), stream_1);
  }
  CHECK(cudaStreamSynchronize(stream_1));
  CHECK(cudaSetDevice(0));
  c.Expect("device_0", Zoo<150>(), 3, "eager");
  c.Expect("device_1", Zoo<150>(), 3, "eager");
  if (peers) {  // else the copy goes by way of the host, in several records
    const Range range("peer");
    CHECK(cudaDeviceEnablePeerAccess(1, 0));
    CHECK(cudaMemcpyPeerAsync(on_1, 1, on_0, 0, kBytes, stream_0));
    c.ExpectCopy("peer", "PtoP", 1, "eager");
  }
  CHECK(cudaStreamSynchronize(stream_0));
  CHECK(cudaFree(on_0));
  CHECK(cudaFree(on_1));
}

#endif  // LAMINA_TESTS_PROGRAMS_GRAPH_ZOO_EAGER_CUH_
