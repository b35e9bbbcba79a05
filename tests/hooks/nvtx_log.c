/* An NVTX tool that writes what it is told, one line an event, to the file named by NVTX_LOG (default: standard error):
 *   push|start|mark|pop|end DOMAIN THREAD TEXT
 * A domain without a name is `default`; THREAD counts up from 1. `pop` and `end` have no text; `start` and `end` have
 * their id in its place (`start lamina 1 #7 text`, `end lamina 2 #7`); a pop with nothing open is `pop-empty`.
 * Loaded with NVTX_INJECTION64_PATH. NVTX_LOG_QUIET=1 takes the calls and writes nothing, for measuring. */
#include <nvtx3/nvToolsExt.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { kMaxDomains = 64 };

struct domain {
  char* name;
  int index;
};
struct text {
  const char* words;
};

static FILE* g_file;
static int g_quiet;
static pthread_mutex_t g_mutex = PTHREAD_MUTEX_INITIALIZER;
static struct domain g_domains[kMaxDomains] = {{"default", 0}};
static int g_domain_count = 1;
static atomic_int g_threads;
static atomic_ullong g_ranges;
static __thread int t_number;
static __thread int t_depth[kMaxDomains];

static struct domain* domain_of(nvtxDomainHandle_t handle) { return handle ? (struct domain*)handle : &g_domains[0]; }

static void line(const char* event, struct domain* domain, unsigned long long id, const char* words) {
  if (g_quiet) return;
  if (!t_number) t_number = atomic_fetch_add(&g_threads, 1) + 1;
  pthread_mutex_lock(&g_mutex);
  fprintf(g_file, "%s %s %d", event, domain->name, t_number);
  if (id) fprintf(g_file, " #%llu", id);
  if (words) {
    fputc(' ', g_file);
    for (; *words; ++words) *words == '\n' ? fputs("\\n", g_file) : fputc(*words, g_file);
  }
  fputc('\n', g_file);
  fflush(g_file);
  pthread_mutex_unlock(&g_mutex);
}

static const char* words_of(const nvtxEventAttributes_t* event) {
  if (event->messageType == NVTX_MESSAGE_TYPE_ASCII) return event->message.ascii;
  if (event->messageType == NVTX_MESSAGE_TYPE_REGISTERED && event->message.registered) {
    return ((struct text*)event->message.registered)->words;
  }
  return "(no text)";
}

static int push(struct domain* domain, const char* words) {
  line("push", domain, 0, words);
  return t_depth[domain->index]++;
}
static int pop(struct domain* domain) {
  int open = t_depth[domain->index] > 0;
  line(open ? "pop" : "pop-empty", domain, 0, NULL);
  return open ? --t_depth[domain->index] : -1;
}
static nvtxRangeId_t start(struct domain* domain, const char* words) {
  nvtxRangeId_t id = atomic_fetch_add(&g_ranges, 1) + 1;
  line("start", domain, id, words);
  return id;
}

static void mark_ex(const nvtxEventAttributes_t* event) { line("mark", domain_of(NULL), 0, words_of(event)); }
static void mark_a(const char* words) { line("mark", domain_of(NULL), 0, words); }
static nvtxRangeId_t start_ex(const nvtxEventAttributes_t* event) { return start(domain_of(NULL), words_of(event)); }
static nvtxRangeId_t start_a(const char* words) { return start(domain_of(NULL), words); }
static void end(nvtxRangeId_t id) { line("end", domain_of(NULL), id, NULL); }
static int push_ex(const nvtxEventAttributes_t* event) { return push(domain_of(NULL), words_of(event)); }
static int push_a(const char* words) { return push(domain_of(NULL), words); }
static int pop_default(void) { return pop(domain_of(NULL)); }

static void domain_mark(nvtxDomainHandle_t domain, const nvtxEventAttributes_t* event) {
  line("mark", domain_of(domain), 0, words_of(event));
}
static nvtxRangeId_t domain_start(nvtxDomainHandle_t domain, const nvtxEventAttributes_t* event) {
  return start(domain_of(domain), words_of(event));
}
static void domain_end(nvtxDomainHandle_t domain, nvtxRangeId_t id) { line("end", domain_of(domain), id, NULL); }
static int domain_push(nvtxDomainHandle_t domain, const nvtxEventAttributes_t* event) {
  return push(domain_of(domain), words_of(event));
}
static int domain_pop(nvtxDomainHandle_t domain) { return pop(domain_of(domain)); }

/* A domain created twice, as two libraries do, is one. */
static nvtxDomainHandle_t create_domain(const char* name) {
  struct domain* domain = NULL;
  pthread_mutex_lock(&g_mutex);
  for (int i = 1; i < g_domain_count && !domain; ++i) {
    if (strcmp(g_domains[i].name, name) == 0) domain = &g_domains[i];
  }
  if (!domain && g_domain_count < kMaxDomains) {
    domain = &g_domains[g_domain_count];
    domain->name = strdup(name);
    domain->index = g_domain_count++;
  }
  pthread_mutex_unlock(&g_mutex);
  return (nvtxDomainHandle_t)domain;
}
static nvtxStringHandle_t register_string(nvtxDomainHandle_t domain, const char* words) {
  struct text* text = malloc(sizeof(*text));
  text->words = strdup(words);
  line("register", domain_of(domain), 0, words);
  return (nvtxStringHandle_t)text;
}

struct entry {
  NvtxCallbackModule module;
  unsigned int id;
  void* function;
};

static const struct entry kEntries[] = {
    {NVTX_CB_MODULE_CORE, NVTX_CBID_CORE_MarkEx, mark_ex},
    {NVTX_CB_MODULE_CORE, NVTX_CBID_CORE_MarkA, mark_a},
    {NVTX_CB_MODULE_CORE, NVTX_CBID_CORE_RangeStartEx, start_ex},
    {NVTX_CB_MODULE_CORE, NVTX_CBID_CORE_RangeStartA, start_a},
    {NVTX_CB_MODULE_CORE, NVTX_CBID_CORE_RangeEnd, end},
    {NVTX_CB_MODULE_CORE, NVTX_CBID_CORE_RangePushEx, push_ex},
    {NVTX_CB_MODULE_CORE, NVTX_CBID_CORE_RangePushA, push_a},
    {NVTX_CB_MODULE_CORE, NVTX_CBID_CORE_RangePop, pop_default},
    {NVTX_CB_MODULE_CORE2, NVTX_CBID_CORE2_DomainMarkEx, domain_mark},
    {NVTX_CB_MODULE_CORE2, NVTX_CBID_CORE2_DomainRangeStartEx, domain_start},
    {NVTX_CB_MODULE_CORE2, NVTX_CBID_CORE2_DomainRangeEnd, domain_end},
    {NVTX_CB_MODULE_CORE2, NVTX_CBID_CORE2_DomainRangePushEx, domain_push},
    {NVTX_CB_MODULE_CORE2, NVTX_CBID_CORE2_DomainRangePop, domain_pop},
    {NVTX_CB_MODULE_CORE2, NVTX_CBID_CORE2_DomainRegisterStringA, register_string},
    {NVTX_CB_MODULE_CORE2, NVTX_CBID_CORE2_DomainCreateA, create_domain},
};

static pthread_once_t g_once = PTHREAD_ONCE_INIT;

static void open_log(void) {
  const char* path = getenv("NVTX_LOG");
  const char* quiet = getenv("NVTX_LOG_QUIET");
  g_quiet = quiet && strcmp(quiet, "1") == 0;
  g_file = path ? fopen(path, "w") : NULL;
  if (!g_file) g_file = stderr;
}

/* Called once for each library that has its own copy of NVTX. */
__attribute__((visibility("default"))) int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t get_export_table) {
  const NvtxExportTableCallbacks* callbacks = get_export_table(NVTX_ETID_CALLBACKS);
  pthread_once(&g_once, open_log);
  for (size_t i = 0; i < sizeof(kEntries) / sizeof(kEntries[0]); ++i) {
    NvtxFunctionTable table = NULL;
    unsigned int size = 0;
    if (!callbacks || !callbacks->GetModuleFunctionTable(kEntries[i].module, &table, &size)) return 0;
    if (kEntries[i].id < size && table[kEntries[i].id]) *table[kEntries[i].id] = (NvtxFunctionPointer)kEntries[i].function;
  }
  return 1;
}
