// The profile format, version 1: the one place that says what the recorder writes and the report reads.
//
// A profile is a folder with one file a process, NAME.PID.lamina. A file is a FileHeader, then chunks. A chunk is a
// ChunkHeader and `stored_size` bytes: one zstd frame, checksummed by zstd, that holds `raw_size` bytes of records.
// A record is a RecordHeader and its payload, `units` * 8 bytes in all, so that a reader skips kinds it does not know.
// Everything is little-endian and naturally aligned; times are nanoseconds.
//
// Three kinds of chunk carry records (ChunkKind), and each can be read without the ones before it:
//   definitions  what ids mean: strings, contexts, steps, properties of the process; written before their first use
//   thread       a piece of one host thread's stream, in the order things happened there. A launch or a graph node
//                between a push and its pop belongs to that call. `sequence` counts a thread's pieces: a gap is a loss,
//                after which the next ThreadState record tells the open calls again.
//   activity     what ran on the GPU. Site records say what is the same for many executions; their ids hold for the
//                chunk they stand in. ActivityRecord times are differences to the record before, the first to
//                ChunkHeader::base_time.
// A clean end writes a trailer chunk with the counts. A file without one was cut; what precedes the cut is whole.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace lamina::format {

inline constexpr char kMagic[8] = {'L', 'A', 'M', 'I', 'N', 'A', '\r', '\n'};
inline constexpr uint16_t kVersion = 1;
inline constexpr uint32_t kChunkMagic = 0x4b48434c;  // "LCHK"
inline constexpr uint32_t kMaxChunkBytes = 4u << 20;  // of records, before compression; a reader refuses more
inline constexpr char kFileSuffix[] = ".lamina";

// Feature bits a reader must know to read the file at all. None so far.
inline constexpr uint32_t kKnownFeatures = 0;

struct FileHeader {
  char magic[8];
  uint16_t version;
  uint16_t header_size;  // bytes; the first chunk begins there
  uint32_t features;
  uint64_t start_time;  // CLOCK_REALTIME
  uint32_t pid;
  uint32_t reserved;
};

enum class ChunkKind : uint8_t { kDefinitions = 1, kThread = 2, kActivity = 3, kTrailer = 4 };

struct ChunkHeader {
  uint32_t magic;
  ChunkKind kind;
  uint8_t reserved[3];
  uint32_t stored_size;
  uint32_t raw_size;
  uint64_t base_time;  // activity chunks: CLOCK_REALTIME that the first record's start counts from
  uint32_t thread;     // thread chunks: number of the thread in this process, in order of its first event
  uint32_t sequence;   // thread chunks: number of the piece in the thread's stream
  uint32_t reserved2;
  uint32_t check;  // header_check() of the bytes before this field
};

// FNV-1a. The payload has zstd's checksum; this one keeps a damaged header from being believed.
inline uint32_t header_check(const ChunkHeader& header) {
  auto* bytes = reinterpret_cast<const unsigned char*>(&header);
  uint32_t hash = 2166136261u;
  for (size_t i = 0; i < offsetof(ChunkHeader, check); ++i) hash = (hash ^ bytes[i]) * 16777619u;
  return hash;
}

enum class RecordKind : uint8_t {
  // definitions
  kString = 1,
  kContext = 2,
  kStep = 3,
  kStepEnd = 4,
  kProperty = 5,
  kClockPair = 6,
  kLoss = 7,
  kThreadName = 8,
  kCode = 9,
  kStack = 10,
  // thread
  kThreadState = 20,
  kStepChange = 21,
  kPush = 22,
  kPop = 23,
  kMark = 24,
  kLaunch = 25,
  kCallStack = 26,
  kGraphCreated = 30,
  kGraphNode = 31,
  kGraphNodeCloned = 32,
  kGraphExec = 33,
  kGraphDestroyed = 34,
  kGraphExecDestroyed = 35,
  kGraphNodeUpdated = 36,
  kGraphExecUpdated = 37,
  kGraphNodeSetParams = 38,
  // activity
  kKernelSite = 50,
  kMemcpySite = 51,
  kMemsetSite = 52,
  kActivity = 53,
  // trailer
  kTrailer = 60,
};

struct RecordHeader {
  RecordKind kind;
  uint8_t flags;
  uint16_t units;  // of 8 bytes, this header included
  uint32_t id;     // what it is of each kind is said there
};

// ---- definitions ------------------------------------------------------------------------------------------------

enum StringFlags : uint8_t { kStringCut = 1 };  // longer than kMaxStringBytes, the rest was left out

inline constexpr uint32_t kMaxStringBytes = 64u << 10;

// `id`: of the string, from 1. The text follows, `size` bytes of UTF-8, zero-padded to whole units.
struct StringRecord {
  RecordHeader header;
  uint32_t size;
  uint32_t domain;  // string id of the NVTX domain's name; 0: the default domain, or no NVTX text at all
};

enum class ContextKind : uint8_t { kRange = 0, kPhase = 1 };

inline constexpr uint32_t kRootContext = 0;   // no range open
inline constexpr uint32_t kOtherContext = 1;  // past the limit of contexts; what is below has lost its name

// A node of the tree of open ranges. `id`: of the context, from 2. flags: its ContextKind. Ranges of one phase are one
// node, whatever their messages; those stand in the StepRecords.
struct ContextRecord {
  RecordHeader header;
  uint32_t parent;
  uint32_t name;  // string id
};

// A phase range or mark opened once is a step. Until the first opening the process is in kStartupStep, between phases
// in kNoStep.
inline constexpr uint32_t kStartupStep = 0;
inline constexpr uint32_t kNoStep = 1;
inline constexpr uint32_t kFirstStep = 2;

enum StepFlags : uint8_t {
  kStepNotCollected = 1,  // kernel activity was off by --collect or --every
  kStepFound = 2,         // the PyTorch hook found it by itself: where the program names steps, only those count
};

// `id`: of the step, in order of opening.
struct StepRecord {
  RecordHeader header;
  uint32_t phase;    // string id of the phase's NAME
  uint32_t message;  // string id of the range or mark that opened it
  uint64_t time;  // host clock
};

struct StepEndRecord {  // `id`: of the step
  RecordHeader header;
  uint64_t time;  // host clock
};

// A fact about the process, its machine or the run: "key\0value" follows, `size` bytes, zero-padded. `id`: 0.
// Keys are dotted (process.command, device.0.name, rank.RANK); "context.KEY" holds a JSON value.
struct PropertyRecord {
  RecordHeader header;
  uint32_t size;
  uint32_t key_size;  // without the zero byte
};

// Host times are CLOCK_MONOTONIC, GPU times CLOCK_REALTIME; read one after the other now and then.
struct ClockPairRecord {
  RecordHeader header;
  uint64_t host_time;
  uint64_t realtime;
};

enum class LossKind : uint32_t {
  kThreadRecords = 1,    // a thread found no buffer: `count` records of its stream
  kActivityRecords = 2,  // the writer was too slow: `count` records of GPU activity
  kCuptiDropped = 3,     // CUPTI says it dropped `count` records
  kWriteFailed = 4,      // the file could not be written: `count` chunks
  kContexts = 5,         // past the limit of contexts: `count` ranges went to kOtherContext
  kStrings = 6,          // past the limit of strings: `count` texts were replaced
  kSignalHandlers = 7,   // `count` NVTX events of a signal handler came while its thread was in the recorder
  kStacks = 8,           // past the limit of stacks: `count` launches have none
};

struct LossRecord {  // `id`: a LossKind
  RecordHeader header;
  uint64_t count;
};

struct ThreadNameRecord {  // `id`: number of the thread
  RecordHeader header;
  uint32_t tid;  // of the system
  uint32_t name;  // string id
};

enum class CodeLanguage : uint32_t {
  kNative = 0,
  kPython = 1,  // has no module, and its function is as Python has it
};

// A place in the program's code, just before a return address. `id`: of the place, from 1. String ids are 0 where nothing is
// known.
struct CodeRecord {
  RecordHeader header;
  uint32_t module;    // string id: path of the ELF file; 0: code of no file
  uint32_t build_id;  // string id
  uint32_t function;  // string id, mangled
  uint32_t file;      // string id: source
  uint32_t line;
  CodeLanguage language;
  uint64_t offset;  // vaddr in the file; of no file: the address
};

// A frame of call stacks: the stack is this frame, and those of its parent around it. `id`: of the stack, from 1.
struct StackRecord {
  RecordHeader header;
  uint32_t parent;  // stack; 0: this is the outermost
  uint32_t code;    // place; 0: no frame, but what its parent launches
  uint32_t kernel;  // string id of the mangled name of what is launched from here; 0: not known, or a frame further out
  uint32_t reserved;
};

// ---- a thread's stream ------------------------------------------------------------------------------------------

// The open calls, outermost first, as OpenCall records behind this one. `id`: how many. Begins every buffer of the
// thread, so that a reader can start there.
struct ThreadStateRecord {
  RecordHeader header;
  uint32_t step;
  uint32_t calls;  // how many calls (pushes) this thread has made so far
};
struct OpenCall {
  uint32_t context;
  uint32_t call;  // number of the call among the thread's, from 1
};

struct StepChangeRecord {  // `id`: the step this thread is in from here on
  RecordHeader header;
};

enum PushFlags : uint8_t { kPushStartEnd = 1 };  // nvtxRangeStart, not push

struct PushRecord {  // `id`: context
  RecordHeader header;
  uint64_t time;  // host clock
};

struct PopRecord {  // `id`: how many calls stay open outside of the closed one: its place in the stack
  RecordHeader header;
  uint64_t time;
};

struct MarkRecord {  // `id`: string
  RecordHeader header;
  uint64_t time;
};

enum class LaunchKind : uint8_t { kKernel = 0, kMemcpy = 1, kMemset = 2, kGraph = 3 };
enum LaunchFlags : uint8_t {
  kLaunchKindMask = 3,
  kLaunchCaptured = 4,  // into a graph under construction: no activity follows
  kLaunchFailed = 8,
  kLaunchNotCollected = 16,  // kernel activity was off
};

struct LaunchRecord {  // `id`: correlation id. Written when the call returns.
  RecordHeader header;
  uint32_t context;
  uint32_t graph_exec;      // graph launches: id of the executable graph; 0: not known
  uint32_t graph_sequence;  // graph launches: how many graph records the process had made: what came later does not count
  uint32_t reserved;
};

// The native call stack of the launches, graph nodes and new parameters that come from here on in this stream, until the next
// such record or ThreadState. `id`: stack, 0: none.
struct CallStackRecord {
  RecordHeader header;
};

// Graph records of all threads, in the order of GraphHeader::sequence, tell one story: a graph may be captured on one
// thread and instantiated on another.
struct GraphHeader {
  RecordHeader header;
  uint32_t sequence;  // counts the graph records of the process, from 0, and wraps
  uint32_t graph;     // what it is of each kind is said there
};

enum GraphFlags : uint8_t { kGraphCloned = 1 };  // by cuGraphClone; comes when the nodes are there

struct GraphCreatedRecord {  // `id`: graph
  GraphHeader header;        // graph: kGraphCloned: the one it was cloned from
};

// A node came to be, in the calls open on this thread. `id`: context.
struct GraphNodeRecord {
  GraphHeader header;  // graph: string id of the kernel's mangled name; 0: not known
  uint64_t node;       // graph id << 32 | number of the node in its graph
};

// The node is a copy: it belongs where its original does. `id`: 0.
struct GraphNodeClonedRecord {
  GraphHeader header;
  uint64_t node;
  uint64_t original;
};

// An instantiation is over. `id`: the executable graph, which is also the id of the graph that its nodes were cloned
// into. Graphs that were created on this thread since that one, as far as nodes were cloned into them, are its child
// graphs and conditional bodies. Activity records number all nodes through, body after body, in the order in which the
// instantiation has destroyed these graphs again (measured on driver 580).
struct GraphExecRecord {
  GraphHeader header;  // graph: instantiated from
};

struct GraphDestroyedRecord {  // also kGraphExecDestroyed. `id`: graph or executable graph
  GraphHeader header;
};

// cuGraphExecUpdate is over. `id`: the executable graph. Nodes that it changed came as kGraphNodeUpdated before; those
// it found equal did not, and belong to the new graph all the same.
struct GraphExecUpdatedRecord {
  GraphHeader header;  // graph: the new one
};

// A node of an executable graph now does what `source`, a node of the new graph, says. `id`: the executable graph.
struct GraphNodeUpdatedRecord {
  GraphHeader header;
  uint64_t node;  // as activity records number it
  uint64_t source;
};

// A node got new parameters and belongs to this thread's open calls from here on. `id`: context.
struct GraphNodeSetParamsRecord {
  GraphHeader header;  // graph: the executable graph in which its copy got them; 0: the node itself
  uint64_t node;       // of the graph the user built
};

// ---- activity ---------------------------------------------------------------------------------------------------

// What the executions of one kernel at one place have in common. `id`: of the site in this chunk, for all site kinds.
struct KernelSiteRecord {
  RecordHeader header;
  uint32_t name;  // string id, mangled
  uint32_t device;
  uint32_t context;
  uint32_t stream;
  uint64_t graph_node;  // 0: not from a graph
  int32_t grid[3];
  int32_t block[3];
  uint32_t static_shared_memory;   // bytes
  uint32_t dynamic_shared_memory;  // bytes
  uint32_t registers_per_thread;
  uint32_t launch_type;  // CUpti_ActivityLaunchType
};

struct MemcpySiteRecord {
  RecordHeader header;
  uint32_t device;
  uint32_t context;
  uint32_t stream;
  uint8_t copy_kind;         // CUpti_ActivityMemcpyKind
  uint8_t source_kind;       // CUpti_ActivityMemoryKind
  uint8_t destination_kind;  // CUpti_ActivityMemoryKind
  uint8_t asynchronous;
  uint64_t graph_node;
  uint64_t bytes;
  uint32_t source_device;  // peer copies
  uint32_t destination_device;
};

struct MemsetSiteRecord {
  RecordHeader header;
  uint32_t device;
  uint32_t context;
  uint32_t stream;
  uint32_t memory_kind;  // CUpti_ActivityMemoryKind
  uint64_t graph_node;
  uint64_t bytes;
};

enum ActivityFlags : uint8_t {
  kActivityNoTime = 1,    // CUPTI gave no usable times; start_delta and duration are 0
  kActivityWideTime = 2,  // start_delta and duration did not fit: a WideTime follows
};

struct ActivityRecord {  // `id`: site
  RecordHeader header;
  uint32_t correlation;
  uint32_t duration;
  int32_t start_delta;  // to the start of the record before in this chunk
  uint32_t reserved;
};
struct WideTime {
  uint64_t start;
  uint64_t duration;
};

struct TrailerRecord {  // `id`: 0
  RecordHeader header;
  uint64_t activity_records;
  uint64_t chunks;    // before this one
  uint64_t end_time;  // CLOCK_REALTIME
};

template <typename T>
inline constexpr bool kIsPlain = std::is_trivially_copyable_v<T> && std::is_standard_layout_v<T> && sizeof(T) % 8 == 0;

static_assert(sizeof(FileHeader) == 32 && kIsPlain<FileHeader>);
static_assert(sizeof(ChunkHeader) == 40 && kIsPlain<ChunkHeader>);
static_assert(sizeof(RecordHeader) == 8 && kIsPlain<RecordHeader>);
static_assert(sizeof(StringRecord) == 16 && kIsPlain<StringRecord>);
static_assert(sizeof(ContextRecord) == 16 && kIsPlain<ContextRecord>);
static_assert(sizeof(StepRecord) == 24 && kIsPlain<StepRecord>);
static_assert(sizeof(StepEndRecord) == 16 && kIsPlain<StepEndRecord>);
static_assert(sizeof(PropertyRecord) == 16 && kIsPlain<PropertyRecord>);
static_assert(sizeof(ClockPairRecord) == 24 && kIsPlain<ClockPairRecord>);
static_assert(sizeof(LossRecord) == 16 && kIsPlain<LossRecord>);
static_assert(sizeof(ThreadNameRecord) == 16 && kIsPlain<ThreadNameRecord>);
static_assert(sizeof(CodeRecord) == 40 && kIsPlain<CodeRecord>);
static_assert(sizeof(StackRecord) == 24 && kIsPlain<StackRecord>);
static_assert(sizeof(CallStackRecord) == 8 && kIsPlain<CallStackRecord>);
static_assert(sizeof(ThreadStateRecord) == 16 && kIsPlain<ThreadStateRecord>);
static_assert(sizeof(OpenCall) == 8 && kIsPlain<OpenCall>);
static_assert(sizeof(StepChangeRecord) == 8 && kIsPlain<StepChangeRecord>);
static_assert(sizeof(PushRecord) == 16 && kIsPlain<PushRecord>);
static_assert(sizeof(PopRecord) == 16 && kIsPlain<PopRecord>);
static_assert(sizeof(MarkRecord) == 16 && kIsPlain<MarkRecord>);
static_assert(sizeof(LaunchRecord) == 24 && kIsPlain<LaunchRecord>);
static_assert(sizeof(GraphHeader) == 16 && kIsPlain<GraphHeader>);
static_assert(sizeof(GraphCreatedRecord) == 16 && kIsPlain<GraphCreatedRecord>);
static_assert(sizeof(GraphNodeRecord) == 24 && kIsPlain<GraphNodeRecord>);
static_assert(sizeof(GraphNodeClonedRecord) == 32 && kIsPlain<GraphNodeClonedRecord>);
static_assert(sizeof(GraphExecRecord) == 16 && kIsPlain<GraphExecRecord>);
static_assert(sizeof(GraphDestroyedRecord) == 16 && kIsPlain<GraphDestroyedRecord>);
static_assert(sizeof(GraphExecUpdatedRecord) == 16 && kIsPlain<GraphExecUpdatedRecord>);
static_assert(sizeof(GraphNodeUpdatedRecord) == 32 && kIsPlain<GraphNodeUpdatedRecord>);
static_assert(sizeof(GraphNodeSetParamsRecord) == 24 && kIsPlain<GraphNodeSetParamsRecord>);
static_assert(sizeof(KernelSiteRecord) == 72 && kIsPlain<KernelSiteRecord>);
static_assert(sizeof(MemcpySiteRecord) == 48 && kIsPlain<MemcpySiteRecord>);
static_assert(sizeof(MemsetSiteRecord) == 40 && kIsPlain<MemsetSiteRecord>);
static_assert(sizeof(ActivityRecord) == 24 && kIsPlain<ActivityRecord>);
static_assert(sizeof(WideTime) == 16 && kIsPlain<WideTime>);
static_assert(sizeof(TrailerRecord) == 32 && kIsPlain<TrailerRecord>);

}  // namespace lamina::format
