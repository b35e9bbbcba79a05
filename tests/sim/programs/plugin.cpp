// A library that launches by a function of its own, IN_PLUGIN, with FRAME_BYTES on the stack.
#define STAYS asm volatile("" ::: "memory")

[[gnu::noinline]] static void IN_PLUGIN(void (*launch)(const char*)) {
  [[maybe_unused]] volatile char frame[FRAME_BYTES];
  frame[0] = 0;
  launch("plugged");
  STAYS;
}

extern "C" __attribute__((visibility("default"))) void plugin_run(void (*launch)(const char*)) {
  IN_PLUGIN(launch);
  STAYS;
}
