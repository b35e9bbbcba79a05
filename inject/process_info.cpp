#include "inject/process_info.h"

#include <cuda.h>
#include <dlfcn.h>
#include <limits.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <type_traits>

#include "inject/recorder.h"

namespace lamina {
namespace {

constexpr const char* kRankVariables[] = {"RANK",          "LOCAL_RANK",           "WORLD_SIZE",           "OMPI_COMM_WORLD_RANK",
                                          "SLURM_PROCID",  "OMPI_COMM_WORLD_SIZE", "CUDA_VISIBLE_DEVICES"};

// The arguments as a shell would take them, near enough to read.
std::string command_line() {
  std::string command;
  FILE* file = fopen("/proc/self/cmdline", "re");
  if (!file) return command;
  for (int c = fgetc(file); c != EOF && command.size() < 16384; c = fgetc(file)) command += c == 0 ? ' ' : static_cast<char>(c);
  fclose(file);
  if (!command.empty() && command.back() == ' ') command.pop_back();
  return command;
}

std::string current_folder() {
  char buffer[PATH_MAX];
  return getcwd(buffer, sizeof(buffer)) ? buffer : "";
}

std::string version_text(int version) { return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10); }

template <typename Function>
Function* driver_function(const char* name) {
  static void* driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  return driver ? reinterpret_cast<Function*>(dlsym(driver, name)) : nullptr;
}

// One device of the driver's, under "device.N.".
void add_device(Recorder& recorder, int number) {
  auto* get_name = driver_function<decltype(cuDeviceGetName)>("cuDeviceGetName");
  auto* get_attribute = driver_function<decltype(cuDeviceGetAttribute)>("cuDeviceGetAttribute");
  auto* total_memory = driver_function<decltype(cuDeviceTotalMem)>("cuDeviceTotalMem_v2");
  if (!get_name || !get_attribute || !total_memory) return;
  std::string prefix = "device." + std::to_string(number) + ".";
  char name[256] = "";
  if (get_name(name, sizeof(name), number) == CUDA_SUCCESS) recorder.definitions.add_property(prefix + "name", name);
  size_t bytes = 0;
  if (total_memory(&bytes, number) == CUDA_SUCCESS) recorder.definitions.add_property(prefix + "memory_bytes", std::to_string(bytes));
  auto attribute = [&](const char* key, CUdevice_attribute which) {
    int value = 0;
    if (get_attribute(&value, which, number) == CUDA_SUCCESS) recorder.definitions.add_property(prefix + key, std::to_string(value));
  };
  attribute("compute_capability_major", CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
  attribute("compute_capability_minor", CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
  attribute("multiprocessors", CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
  attribute("l2_bytes", CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE);
  attribute("clock_khz", CU_DEVICE_ATTRIBUTE_CLOCK_RATE);
  attribute("memory_clock_khz", CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE);
}

}  // namespace

std::string program_name() {
  char buffer[PATH_MAX];
  ssize_t length = readlink("/proc/self/exe", buffer, sizeof(buffer));
  std::string path = length > 0 ? std::string(buffer, static_cast<size_t>(length)) : "program";
  return path.substr(path.find_last_of('/') + 1);
}

void add_process_properties(Recorder& recorder) {
  auto add = [&](const char* key, const std::string& value) { recorder.definitions.add_property(key, value); };
  utsname system{};
  uname(&system);
  add("process.program", program_name());
  add("process.command", command_line());
  add("process.folder", current_folder());
  add("process.pid", std::to_string(getpid()));
  add("process.parent", std::to_string(getppid()));
  add("machine.host", system.nodename);
  add("machine.system", std::string(system.sysname) + " " + system.release + " " + system.machine);
  add("recorder.version", LAMINA_VERSION);
  add("cupti.version", std::to_string(recorder.cupti.version()));
  add("cupti.path", recorder.cupti.path());
  for (const char* name : kRankVariables) {
    if (const char* value = getenv(name)) add((std::string("rank.") + name).c_str(), value);
  }
  for (const char* name : {"LAMINA_COLLECT", "LAMINA_EVERY", "LAMINA_PHASE_PATTERN"}) {
    if (const char* value = getenv(name)) add((std::string("option.") + name).c_str(), value);
  }
  if (!recorder.options.context.empty()) add("context", recorder.options.context);
}

bool add_device_properties(Recorder& recorder) {
  auto* get_version = driver_function<decltype(cuDriverGetVersion)>("cuDriverGetVersion");
  auto* get_count = driver_function<decltype(cuDeviceGetCount)>("cuDeviceGetCount");
  int version = 0;
  int count = 0;
  if (!get_count || get_count(&count) != CUDA_SUCCESS) return false;
  if (get_version && get_version(&version) == CUDA_SUCCESS) {
    recorder.definitions.add_property("driver.cuda_version", version_text(version));
  }
  for (int number = 0; number < count; ++number) add_device(recorder, number);
  return true;
}

}  // namespace lamina
