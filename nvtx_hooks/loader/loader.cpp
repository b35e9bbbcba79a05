// lamina_ops.so: finds the LibTorch that this process has mapped and loads the ops library that was built for it. Knows
// nothing of PyTorch but the names of two functions, so that it is safe beside any version.
#include <dlfcn.h>
#include <link.h>

#include <cstdio>
#include <cstring>
#include <string>

namespace {

struct LibTorch {
  std::string version;  // 2.11
  const char* abi = "";
};

std::string mapped_libtorch() {
  std::string path;
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* found) {
        if (!info->dlpi_name || !strstr(info->dlpi_name, "/libtorch_cpu.so")) return 0;
        *static_cast<std::string*>(found) = info->dlpi_name;
        return 1;
      },
      &path);
  return path;
}

std::string major_minor(const std::string& configuration) {
  constexpr const char* kLabel = "TORCH_VERSION=";
  size_t at = configuration.find(kLabel);
  if (at == std::string::npos) return "";
  at += strlen(kLabel);
  size_t dot = configuration.find('.', at);
  return configuration.substr(at, configuration.find_first_not_of("0123456789", dot + 1) - at);
}

// at::show_config() tells the version, and the mangling of its name the C++ ABI: a std::string of the older one is a
// single pointer to the characters.
LibTorch inspect(void* library) {
  using ShowConfig = std::string (*)();
  if (auto show = reinterpret_cast<ShowConfig>(dlsym(library, "_ZN2at11show_configB5cxx11Ev"))) {
    return {major_minor(show()), "cxx11"};
  }
  struct OldString {
    const char* characters;
    ~OldString() {}  // returned in memory; its few bytes are left to the process
  };
  using ShowConfigOld = OldString (*)();
  if (auto show = reinterpret_cast<ShowConfigOld>(dlsym(library, "_ZN2at11show_configEv"))) {
    return {major_minor(show().characters), "precxx11"};
  }
  return {};
}

std::string own_folder() {
  Dl_info info;
  if (!dladdr(reinterpret_cast<void*>(&own_folder), &info) || !info.dli_fname) return ".";
  std::string path = info.dli_fname;
  return path.substr(0, path.rfind('/'));
}

std::string load() {
  std::string path = mapped_libtorch();
  if (path.empty()) return "no LibTorch is loaded in this process";
  void* library = dlopen(path.c_str(), RTLD_LAZY | RTLD_NOLOAD);
  if (!library) return "the mapped " + path + " can not be looked into";
  LibTorch torch = inspect(library);
  dlclose(library);
  if (torch.version.empty()) return "ops are not seen: " + path + " does not tell its version";
  std::string name = "lamina_ops-" + torch.version + "-" + torch.abi + ".so";
  void* ops = dlopen((own_folder() + "/" + name).c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!ops) {
    const char* why = dlerror();
    bool missing = why && strstr(why, "No such file");
    return "ops are not seen, only modules: " +
           (missing ? "Lamina was not built for this PyTorch " + torch.version + " (" + torch.abi + "): cmake -DLAMINA_TORCH=" +
                          path.substr(0, path.rfind("/lib")) + " builds " + name
                    : std::string(why ? why : name));
  }
  auto start = reinterpret_cast<int (*)()>(dlsym(ops, "lamina_ops_start"));
  int error = start ? start() : -1;
  return error == 0 ? "" : "ops are not seen: " + name + " gave error " + std::to_string(error);
}

}  // namespace

// Null when ops are observed from now on, else one line that says why not.
extern "C" [[gnu::visibility("default")]] const char* lamina_ops_load() {
  static const std::string problem = load();
  return problem.empty() ? nullptr : problem.c_str();
}
