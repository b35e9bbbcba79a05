// What PyTorch tells of its ops (RecordFunction) as NVTX ranges. PyTorch pairs the two callbacks: of each scope whose start
// was told it tells the end, also when an exception leaves it, and none of a scope that was open before. A range is pushed
// in each start, come what may, and popped in its end; ops that are views have none.
#include <ATen/record_function.h>
#include <dlfcn.h>
#include <torch/version.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <string_view>

#include "nvtx_hooks/text/nvtx.h"
#include "op_key.h"
#include "thread_state.h"

namespace lamina {
namespace {

using Context = std::unique_ptr<at::ObserverContext>;

// Ops have no context, so that nothing is allocated for them.
struct AsyncRange : at::ObserverContext {
  explicit AsyncRange(nvtxRangeId_t range) : id(range) {}
  nvtxRangeId_t id;
};
struct UserScope : at::ObserverContext {
  explicit UserScope(std::shared_ptr<EndsElsewhere> thread) : ends(std::move(thread)) {}
  std::shared_ptr<EndsElsewhere> ends;
};
struct ScriptFunction : at::ObserverContext {
  explicit ScriptFunction(std::shared_ptr<EndsElsewhere> thread) : ends(std::move(thread)) {}
  std::shared_ptr<EndsElsewhere> ends;
  uint64_t number = 0;
};

std::atomic<bool> g_observing{false};
bool g_python = false;  // a program with Python: its module calls have ranges already

const Text* op_range(ThreadState& thread, const at::RecordFunction& function) {
  return thread.cache.find(OpKey(function.name(), function.inputs()));
}

// ---- ops

bool is_op(const at::RecordFunction& function) {
  return function.scope() == at::RecordScope::FUNCTION && !function.isAsync();
}

void start_op(ThreadState& thread, const at::RecordFunction& function) noexcept {
  const Text* range = nullptr;
  try {
    thread.modules.before_op();
    range = op_range(thread, function);
  } catch (...) {
  }
  range ? push(*range) : push(function.name());
  thread.modules.op_opened();
}

void end_op(ThreadState& thread) {
  thread.modules.before_op_closes();
  pop();
}

Context start_async(ThreadState& thread, const at::RecordFunction& function) {
  auto context = std::make_unique<AsyncRange>(0);
  nvtxEventAttributes_t event = op_range(thread, function)->event();
  context->id = nvtxDomainRangeStartEx(g_domain, &event);
  return context;
}

// ---- record_function: the user's own, in the default domain

void pop_user_scopes(int count) {
  for (; count > 0; --count) nvtxRangePop();
}

Context start_user_scope(ThreadState& thread, const at::RecordFunction& function) {
  auto context = std::make_unique<UserScope>(thread.ends);
  pop_user_scopes(thread.ends->take_user_scopes());
  nvtxRangePushA(function.name());
  return context;
}

void end_user_scope(ThreadState* thread, const UserScope& scope) {
  if (!thread || thread->ends != scope.ends) return scope.ends->add_user_scope();
  pop_user_scopes(1 + thread->ends->take_user_scopes());
}

// ---- TorchScript

void leave_function(ThreadState& thread, uint64_t number) {
  if (!thread.modules.leave(number)) thread.ends->add_function(number);
}

void leave_ended_functions(ThreadState& thread) noexcept {
  try {
    for (uint64_t number : thread.ends->take_functions()) leave_function(thread, number);
  } catch (...) {
  }
}

c10::ClassTypePtr self_of(const at::RecordFunction& function) {
  auto inputs = function.inputs();
  if (inputs.empty() || !inputs[0].isObject()) return nullptr;
  c10::ClassTypePtr type = inputs[0].toObjectRef().type();
  return type && type->is_module() ? type : nullptr;
}

// A module's method that is entered from outside has the module's range, unless a call in Python has pushed it. What is
// entered from inside is found by the modules of its ops.
const Text* function_range(ThreadState& thread, const at::RecordFunction& function, const c10::ClassTypePtr& self) {
  if (!self) return op_range(thread, function);
  bool pushed_already = g_python && std::string_view(function.name()) == "forward";
  if (pushed_already || !thread.modules.outside() || !self->name()) return nullptr;
  return thread.modules.text(self->name()->name(), self->name()->name());
}

Context start_function(ThreadState& thread, const at::RecordFunction& function) {
  if (function.name()[0] == '<') return nullptr;  // "<forward op>": a part of the function around it
  auto context = std::make_unique<ScriptFunction>(thread.ends);
  c10::ClassTypePtr self = self_of(function);
  const Text* range = function_range(thread, function, self);
  context->number = thread.modules.enter(range, std::move(self));
  return context;
}

void end_function(ThreadState* thread, const ScriptFunction& function) {
  if (!thread || thread->ends != function.ends) return function.ends->add_function(function.number);
  leave_function(*thread, function.number);
}

// ---- the callbacks

Context start(const at::RecordFunction& function) {
  ThreadState* thread = thread_state();
  if (!thread) return nullptr;
  if (thread->ends->has_functions()) [[unlikely]] leave_ended_functions(*thread);
  if (is_op(function)) [[likely]] {
    if (!thread->views.is_view(function.name())) start_op(*thread, function);
    return nullptr;
  }
  try {
    if (function.isAsync()) return start_async(*thread, function);
    if (function.scope() == at::RecordScope::USER_SCOPE) return start_user_scope(*thread, function);
    return start_function(*thread, function);
  } catch (...) {
    return nullptr;  // the end then finds no context, and does nothing
  }
}

void end_with_context(ThreadState* thread, at::ObserverContext& context) {
  if (auto* async = dynamic_cast<AsyncRange*>(&context)) return nvtxDomainRangeEnd(g_domain, async->id);
  if (auto* user = dynamic_cast<UserScope*>(&context)) return end_user_scope(thread, *user);
  if (auto* script = dynamic_cast<ScriptFunction*>(&context)) end_function(thread, *script);
}

void end(const at::RecordFunction& function, at::ObserverContext* context) {
  ThreadState* thread = thread_state();
  if (!context) [[likely]] {
    if (thread && is_op(function) && !thread->views.is_view(function.name())) end_op(*thread);
    return;
  }
  try {
    end_with_context(thread, *context);
  } catch (...) {
  }
}

// Neither backward, nor what is of mobile and static runtimes.
void add_callback() {
  at::addGlobalCallback(at::RecordFunctionCallback(start, end)
                            .needsInputs(true)
                            .scopes({at::RecordScope::FUNCTION, at::RecordScope::TORCHSCRIPT_FUNCTION,
                                     at::RecordScope::USER_SCOPE}));
}

enum Error { kNone = 0, kNoTool = 1, kFailed = 2 };

Error start_observing() {
  static std::mutex mutex;
  std::lock_guard lock(mutex);
  if (g_observing.load()) return kNone;
  if (!g_domain) g_domain = nvtxDomainCreateA("lamina");
  if (!g_domain) return kNoTool;
  g_python = dlsym(RTLD_DEFAULT, "Py_IsInitialized") != nullptr;
  add_callback();
  g_observing.store(true);
  return kNone;
}

}  // namespace

}  // namespace lamina

#define LAMINA_EXPORT extern "C" __attribute__((visibility("default")))

LAMINA_EXPORT int lamina_ops_start(void) {
  try {
    return lamina::start_observing();
  } catch (...) {
    return lamina::kFailed;
  }
}

LAMINA_EXPORT const char* lamina_ops_torch_version(void) { return TORCH_VERSION; }
