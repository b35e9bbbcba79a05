#include "inject/hook_loader.h"

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <cstring>

#include "inject/log.h"

namespace lamina {
namespace {

// The interpreter, found at run time; all of its stable ABI.
struct Python {
  int (*is_initialized)();
  int (*add_pending_call)(int (*call)(void*), void* argument);
  int (*run_string)(const char* code, void* flags);
  int (*ensure_gil)();
  void (*release_gil)(int state);

  bool find() {
    auto look_up = [](auto& function, const char* name) {
      function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(RTLD_DEFAULT, name));
      return function != nullptr;
    };
    return look_up(is_initialized, "Py_IsInitialized") && look_up(add_pending_call, "Py_AddPendingCall") &&
           look_up(run_string, "PyRun_SimpleStringFlags") && look_up(ensure_gil, "PyGILState_Ensure") &&
           look_up(release_gil, "PyGILState_Release");
  }
};

Python python;
std::string* code;  // never freed: a pending call may come at any time
std::atomic<bool> done{false};

// A path as a Python literal.
std::string quoted(const std::string& path) {
  std::string text = "'";
  for (char c : path) text += c == '\'' || c == '\\' ? std::string{'\\', c} : std::string{c};
  return text + "'";
}

// Nothing of the program's shows it: the module is found by its path, and prints what goes wrong in one line.
std::string start_code(const std::string& path) {
  return "def _lamina_start(path):\n"
         "    import sys\n"
         "    if 'lamina_torch' in sys.modules: return\n"
         "    try:\n"
         "        import importlib.util\n"
         "        spec = importlib.util.spec_from_file_location('lamina_torch', path)\n"
         "        module = importlib.util.module_from_spec(spec)\n"
         "        sys.modules['lamina_torch'] = module\n"
         "        spec.loader.exec_module(module)\n"
         "        module.start()\n"
         "    except Exception as error:\n"
         "        sys.stderr.write(f'lamina: PyTorch is not hooked: {error}\\n')\n"
         "_lamina_start(" +
         quoted(path) + ")\ndel _lamina_start\n";
}

// With the GIL.
int run_once(void*) {
  if (!done.exchange(true)) python.run_string(code->c_str(), nullptr);
  return 0;
}

// Pending calls are the main thread's, which may be waiting in C for a worker that runs the modules. Plain C inside: a
// thread that asks for the GIL while Python ends is unwound.
void* run_from_own_thread(void*) {
  constexpr int kMilliseconds = 200;
  usleep(kMilliseconds * 1000);
  if (done.load() || !python.is_initialized()) return nullptr;
  int state = python.ensure_gil();
  run_once(nullptr);
  python.release_gil(state);
  return nullptr;
}

void start_own_thread() {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  pthread_t thread;
  if (pthread_create(&thread, nullptr, run_from_own_thread, nullptr) == 0) pthread_detach(thread);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

bool is_mapped(const char* library) {
  auto matches = [](dl_phdr_info* info, size_t, void* name) {
    return info->dlpi_name && strstr(info->dlpi_name, static_cast<const char*>(name)) ? 1 : 0;
  };
  return dl_iterate_phdr(matches, const_cast<char*>(library)) == 1;
}

void load_ops(const std::string& path) {
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  auto load = library ? reinterpret_cast<const char* (*)()>(dlsym(library, "lamina_ops_load")) : nullptr;
  if (!load) return log_debug("no ops: %s was not built", path.c_str());
  if (const char* problem = load()) log_line("%s", problem);
}

}  // namespace

void load_torch_hook(const std::string& folder) {
  const char* wanted = getenv("LAMINA_TORCH");
  if (wanted && !strcmp(wanted, "off")) return;
  std::string script = folder + "/lamina/python/lamina_torch.py";
  if (python.find() && python.is_initialized()) {
    if (access(script.c_str(), R_OK) != 0) return;
    code = new std::string(start_code(script));
    python.add_pending_call(run_once, nullptr);
    start_own_thread();
  } else if (is_mapped("/libtorch_cpu.so") && !(wanted && !strcmp(wanted, "modules"))) {
    load_ops(folder + "/lamina/lamina_ops.so");
  }
}

}  // namespace lamina
