// A library that launches by a function of its own, IN_PLUGIN.
#define STAYS asm volatile("" ::: "memory")

[[gnu::noinline]] static void IN_PLUGIN(void (*launch)(const char*)) {
  launch("plugged");
  STAYS;
}

extern "C" __attribute__((visibility("default"))) void plugin_run(void (*launch)(const char*)) {
  IN_PLUGIN(launch);
  STAYS;
}
