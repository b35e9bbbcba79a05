// An observer that does nothing, to measure what RecordFunction itself costs once it is active and boxes the inputs.
#include <ATen/record_function.h>

extern "C" __attribute__((visibility("default"))) int lamina_ops_start(void) {
  auto start = [](const at::RecordFunction&) -> std::unique_ptr<at::ObserverContext> { return nullptr; };
  auto end = [](const at::RecordFunction&, at::ObserverContext*) {};
  at::addGlobalCallback(at::RecordFunctionCallback(start, end)
                            .needsInputs(true)
                            .scopes({at::RecordScope::FUNCTION, at::RecordScope::TORCHSCRIPT_FUNCTION,
                                     at::RecordScope::USER_SCOPE}));
  return 0;
}
