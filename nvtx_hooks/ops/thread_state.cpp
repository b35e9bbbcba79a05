#include "thread_state.h"

namespace lamina {
namespace {

struct Owner {
  ~Owner() {
    delete std::exchange(t_slot.state, nullptr);
    t_slot.closed = true;
  }
  void own() {}
};
thread_local Owner t_owner;

}  // namespace

ThreadState* make_thread_state() noexcept {
  try {
    t_slot.state = new ThreadState;
    t_owner.own();
  } catch (...) {
    t_slot.closed = true;  // for good: of ranges inside of one that was not pushed, the pops would be too many
  }
  return t_slot.state;
}

}  // namespace lamina
