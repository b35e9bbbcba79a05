#include "inject/cupti_api.h"

#include <dlfcn.h>
#include <glob.h>
#include <limits.h>
#include <link.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

#include "inject/log.h"

namespace lamina {
namespace {

constexpr CUpti_ActivityKind kActivityKinds[] = {
    CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL,
    CUPTI_ACTIVITY_KIND_MEMCPY,
    CUPTI_ACTIVITY_KIND_MEMCPY2,  // peer to peer
    CUPTI_ACTIVITY_KIND_MEMSET,
};

int note_cupti(dl_phdr_info* info, size_t, void* result) {
  if (!strstr(info->dlpi_name, "/libcupti.so")) return 0;
  *static_cast<std::string*>(result) = info->dlpi_name;
  return 1;
}

std::string mapped_copy() {
  std::string path;
  dl_iterate_phdr(note_cupti, &path);
  return path;
}

void add_matches(const std::string& pattern, std::vector<std::string>& paths) {
  glob_t found;
  if (glob(pattern.c_str(), 0, nullptr, &found) == 0) {
    for (size_t i = found.gl_pathc; i-- > 0;) paths.push_back(found.gl_pathv[i]);
  }
  globfree(&found);
}

// Where the wheels of NVIDIA put it, in the environment of the running interpreter.
void add_python_copies(std::vector<std::string>& paths) {
  char buffer[PATH_MAX];
  std::vector<std::string> roots;
  ssize_t length = readlink("/proc/self/exe", buffer, sizeof(buffer));
  if (length > 0) roots.emplace_back(buffer, static_cast<size_t>(length));
  if (const char* environment = getenv("VIRTUAL_ENV")) roots.insert(roots.begin(), std::string(environment) + "/bin/x");
  for (std::string root : roots) {
    for (int up = 0; up < 2; ++up) root.resize(root.find_last_of('/') == std::string::npos ? 0 : root.find_last_of('/'));
    for (const char* package : {"cu13", "cuda_cupti"}) {
      add_matches(root + "/lib/python3*/site-packages/nvidia/" + package + "/lib/libcupti.so.*", paths);
    }
  }
}

std::vector<std::string> candidates() {
  std::vector<std::string> paths;
  add_python_copies(paths);
  for (const char* name : {"libcupti.so.13", "libcupti.so.12", "libcupti.so"}) paths.push_back(name);
  std::vector<std::string> toolkits;
  if (const char* home = getenv("CUDA_HOME")) toolkits.push_back(home);
  toolkits.push_back("/usr/local/cuda");
  for (const std::string& toolkit : toolkits) {
    for (const char* folder : {"/lib64", "/extras/CUPTI/lib64"}) add_matches(toolkit + folder + "/libcupti.so*", paths);
  }
  return paths;
}

}  // namespace

bool Cupti::open() {
  std::string mapped = mapped_copy();
  // A second copy beside one that is in use would be a second subscriber.
  if (!mapped.empty()) return load(mapped, RTLD_NOLOAD);
  for (const std::string& path : candidates()) {
    if (load(path, 0)) return true;
  }
  if (problem_.empty()) {
    problem_ = "no libcupti.so found: install the CUDA toolkit's CUPTI or the wheel nvidia-cuda-cupti, or put its folder "
               "into LD_LIBRARY_PATH";
  }
  return false;
}

bool Cupti::load(const std::string& path, int flags) {
  library_ = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL | flags);
  if (!library_) {
    log_debug("%s", dlerror());
    return false;
  }
  path_ = path;
  bool whole = resolve();
  Dl_info info;
  if (get_version_ && dladdr(reinterpret_cast<void*>(get_version_), &info) && info.dli_fname) path_ = info.dli_fname;
  if (whole && get_version_(&version_) == CUPTI_SUCCESS) return true;
  problem_ = path_ + " is too old: CUPTI 12 or newer is needed";
  return false;
}

bool Cupti::resolve() {
  bool whole = true;
  auto find = [&](auto& function, const char* name, bool needed = true) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(library_, name));
    if (!function && needed) whole = false;
  };
  find(flush_all, "cuptiActivityFlushAll");
  find(next_record, "cuptiActivityGetNextRecord");
  find(dropped_records, "cuptiActivityGetNumDroppedRecords");
  find(callback_name, "cuptiGetCallbackName");
  find(graph_node_id, "cuptiGetGraphNodeId");
  find(graph_id, "cuptiGetGraphId");
  find(graph_exec_id, "cuptiGetGraphExecId", false);
  find(get_version_, "cuptiGetVersion");
  find(subscribe_, "cuptiSubscribe");
  find(enable_callback_, "cuptiEnableCallback");
  find(register_callbacks_, "cuptiActivityRegisterCallbacks");
  find(activity_enable_, "cuptiActivityEnable");
  find(activity_disable_, "cuptiActivityDisable");
  find(result_string_, "cuptiGetResultString");
  return whole;
}

std::string Cupti::error_text(CUptiResult result) const {
  const char* text = nullptr;
  if (result_string_(result, &text) == CUPTI_SUCCESS && text) return text;
  return "CUPTI error " + std::to_string(static_cast<int>(result));
}

bool Cupti::subscribe(CUpti_CallbackFunc callback, CUpti_BuffersCallbackRequestFunc requested,
                      CUpti_BuffersCallbackCompleteFunc completed) {
  CUptiResult result = subscribe_(&subscriber_, callback, nullptr);
  if (result == CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED) {
    problem_ = "another profiler holds CUPTI (Nsight, torch.profiler, Proton, DCGM?): run without it";
    return false;
  }
  if (result != CUPTI_SUCCESS) {
    problem_ = path_ + " does not work with this driver (" + error_text(result) + "): use the CUPTI of a CUDA toolkit that fits it";
    return false;
  }
  result = register_callbacks_(requested, completed);
  if (result != CUPTI_SUCCESS) {
    problem_ = "CUPTI takes no activity buffers (" + error_text(result) + ")";
    return false;
  }
  return true;
}

bool Cupti::enable_callback(CUpti_CallbackDomain domain, CUpti_CallbackId id) {
  return enable_callback_(1, subscriber_, domain, id) == CUPTI_SUCCESS;
}

void Cupti::enable_activity() {
  for (CUpti_ActivityKind kind : kActivityKinds) {
    CUptiResult result = activity_enable_(kind);
    if (result != CUPTI_SUCCESS) {
      log_line("CUPTI can not record %s: %s",
               kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL ? "kernels" : "memory operations", error_text(result).c_str());
    }
  }
}

void Cupti::disable_activity() {
  for (CUpti_ActivityKind kind : kActivityKinds) activity_disable_(kind);
}

}  // namespace lamina
