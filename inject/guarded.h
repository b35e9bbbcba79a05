// No exception may reach the program. What fails in the recorder is memory, and then the event is lost.
#pragma once

namespace lamina {

// The function's result, or that of a default-made one.
template <typename Function>
auto guarded(Function function) noexcept -> decltype(function()) {
  try {
    return function();
  } catch (...) {
    return decltype(function())();
  }
}

}  // namespace lamina
