// Gives every GPU activity of one process its place in the layer tree: replays the threads' streams, joins launches with
// activity by correlation id, and graph replays with the places where their nodes were created.
#pragma once

#include <algorithm>
#include <array>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "inject/record.h"
#include "report/attribution/device_time.h"
#include "report/attribution/graph_model.h"
#include "report/attribution/nvtx_message.h"
#include "report/names/kernel_groups.h"
#include "report/records/account.h"
#include "report/records/definitions.h"
#include "report/flat_map.h"
#include "report/records/profile_file.h"
#include "report/tree/layer_tree.h"

namespace lamina {

enum class ActivityKind { kKernel, kMemcpy, kMemset };

// How a kernel was launched, or what a copy moved. Memory in bytes.
struct ActivitySize {
  std::array<int32_t, 3> grid{};
  std::array<int32_t, 3> block{};
  uint32_t registers = 0;  // a thread
  uint32_t static_shared_memory = 0;
  uint32_t dynamic_shared_memory = 0;
  uint64_t bytes = 0;
  bool operator==(const ActivitySize&) const = default;
};

// What ran on the GPU, once.
struct Activity {
  ActivityKind kind = ActivityKind::kKernel;
  uint32_t name = 0;  // LayerTree::name_id: the demangled kernel, `Memcpy HtoD (Pinned -> Device)`, `Memset (Device)`
  uint32_t mangled = 0;  // string id, kernels
  uint32_t device = 0;
  uint32_t stream = 0;
  uint32_t correlation = 0;
  uint64_t graph_node = 0;
  uint64_t start = 0;  // CLOCK_REALTIME ns; 0: not known
  uint64_t duration = 0;  // ns
  bool timed = false;
  ActivitySize size;
};

// How native call stacks show. Where no range is open they are the layers, and where no op is, the trace.
enum class StackView {
  kTrace,   // only the trace, also of what is in no range
  kUsual,
  kLayers,  // they are layers inside of ranges too
  kFull,    // also those frames that say nothing of the program
};

// Why an activity stands where it does.
enum class Placement {
  kLayer,          // under an open range
  kNoRange,        // launched, or its node created, outside of every range
  kDriver,         // no launch was seen for it: the driver's own, or the launch record was lost
  kUnknownNode,    // of a graph whose creation was not seen
  kStaleNode,      // of a graph that an update changed in a way that could not be followed
  kAmbiguousNode,  // the node's kernel is not the one that ran
};

// Adds an op to a trace; false when that is long enough.
bool add_to_trace(std::string& trace, std::string_view op);

class Attribution {
 public:
  // Called for each activity once its place is known; `trace` is a LayerTree::name_id. For `lamina dump` and `trace`.
  using Observer = std::function<void(const Activity&, Position, Placement, uint32_t step, uint32_t trace)>;

  // Without phases all is one phase `all`.
  Attribution(LayerTree& tree, Account& account, PhaseSource phases, Observer observer = nullptr, StackView view = StackView::kUsual)
      : tree_(tree), account_(account), observer_(std::move(observer)), phases_(phases), view_(view) {
    if (tree.wants_gpu_time()) device_time_.emplace(tree);
  }

  // The chunks of one process file in file order, then finish().
  void add(const Chunk& chunk);
  void finish();

  const ProcessDefinitions& definitions() const { return definitions_; }

 private:
  // A call that goes on over several steps stands in each of them.
  struct Placed {
    uint32_t step = UINT32_MAX;
    Position position;
  };
  // A message, with its texts as LayerTree::name_id.
  struct Meaning {
    NvtxMessage message;
    LayerName name;
    uint32_t trace = 0;  // an op, or call_text() of a layer
    uint32_t id = 0;     // counts them
  };
  // That of a context's range, and what it last was together with a call that directly enclosed it (joined()).
  struct ContextMeaning {
    const Meaning* meaning = nullptr;
    const Meaning* outer = nullptr;
    const Meaning* joined = nullptr;
  };
  // What a thread's open calls, down to one of them, are together in the step that the thread is in.
  struct Inside {
    Position position;         // of the innermost layer
    uint32_t trace = 0;        // of the ops in it
    uint32_t layer_trace = 0;  // what the layer adds to a trace
    bool in_layer = false;     // by a range
  };
  struct Frame {
    uint32_t call = 0;  // number among the thread's calls
    const Meaning* meaning = nullptr;
    bool is_phase = false;   // which is no layer
    bool is_native = false;  // no range: of the native call stack of the launch at hand
    bool settled = false;    // only the innermost call may not be: the next may be its twin
    bool has_twin = false;   // a call inside of it is the same call, told by another: it counts once, here
    uint32_t twin_of = 0;    // number of the call outside that is the same; 0: none
    Position home;           // where it was opened
    std::array<Placed, 4> in_steps;  // where it is in the last phase steps it was seen in, which may nest,
    Placed idle;                     // and in the last of startup and between phases
    uint64_t begin = 0;  // host clock
    uint64_t order = 0;
    CapturedCallPtr captured = nullptr;  // made when the first node is created in it
    Inside inside;             // Thread::known says whether it holds

    bool is(NvtxMessage::Kind kind) const { return !is_phase && twin_of == 0 && meaning->message.kind == kind; }
    bool is_layer() const { return is(NvtxMessage::Kind::kLayer) || is(NvtxMessage::Kind::kLeftOut); }
  };
  struct Thread {
    std::vector<Frame> frames;
    uint32_t calls = 0;
    uint32_t step = format::kStartupStep;
    uint32_t next_sequence = 0;
    // A piece is missing: until the next ThreadState the open calls are not known, only the context of each launch.
    bool lost = false;
    std::vector<Frame> before_loss;
    uint32_t context_since = 0;  // that `frames` were made of
    uint32_t stack = 0;          // of launches and nodes
    size_t native_frames = 0;    // how many of `frames`, the innermost, are of the call stack of the launch at hand
    size_t frames_inside = 0;    // how many ranges are inside of these: a launcher's own
    Inside outside;              // of all calls
    Inside beyond;               // of a graph's launch
    Inside nowhere;              // of what is not shown
    size_t known = 0;            // of how many frames, the outermost, `inside` holds
    std::optional<uint32_t> known_step;  // ... in this step, as does `outside`
    std::optional<uint32_t> shown_step;  // whether this step
    bool shown = true;                 // ... was to be collected

    // Something changed at this frame, or further in.
    void forget(size_t from) { known = std::min(known, from); }
  };
  // A native call stack: the functions that are shown, outermost first, and the trace that they are.
  struct CallStack {
    std::vector<const Meaning*> calls;  // ... with the trace as the last
    std::unique_ptr<Meaning> trace;     // null: nothing of it is shown
    std::unique_ptr<Meaning> python;    // what of it is in Python
  };
  // A layer that was open at a launch.
  struct OpenLayer {
    LayerName name;
    Position position;
  };
  struct Launch {
    format::LaunchKind kind = format::LaunchKind::kKernel;
    bool in_layer = false;
    bool shown = true;  // false: its step was not to be collected
    uint32_t step = 0;
    Position position;
    uint32_t trace = 0;  // of the ops around it, else of the innermost layer
    uint64_t order = 0;
  };
  struct GraphLaunch {
    explicit GraphLaunch(const Launch& of) : launch(of) {}

    Launch launch;
    uint32_t ops_trace = 0;     // of the ops around it
    bool native_trace = false;  // of its call stack
    uint32_t exec = 0;
    uint64_t graph_sequence = 0;           // how many graph events had happened
    std::vector<OpenLayer> layers;         // by ranges
    std::vector<LayerName> native_layers;  // the functions of the call stack, inside of these,
    std::vector<OpenLayer> native_places;  // ... once something of no range was replayed
    FlatMap<uint32_t, Position> replayed;  // calls entered so far, by CapturedCall::number
    std::array<Position, 6> apart;         // rows for what has no layer, by Placement
    uint64_t first_start = UINT64_MAX;     // of its kernels
  };
  using GraphLaunchPtr = std::shared_ptr<GraphLaunch>;
  // The rows of a step for what has no layer, and for all that has.
  struct StepPlace {
    Position root;
    Position no_module;
    bool has_no_module = false;
  };

  void read_thread(const Chunk& chunk);
  void read_thread_record(uint32_t id, Thread& thread, const RecordView& record);
  void restore(Thread& thread, const RecordView& record);
  void push(Thread& thread, uint32_t context, uint64_t time);
  void pop(Thread& thread, uint32_t index, uint64_t time);
  void stand_in(Thread& thread, uint32_t context);
  void settle(Thread& thread);
  uint32_t join_twin(Thread& thread, ContextMeaning& inner);
  void launch(Thread& thread, const RecordView& record);
  GraphLaunchPtr graph_launch(Thread& thread, const Launch& launch, const format::LaunchRecord& record);
  const GraphLaunchPtr& replay_of(const Activity& activity, const Launch& launch);
  void join_waiting(uint32_t correlation);
  void graph_record(uint32_t id, Thread& thread, const RecordView& record);
  void apply_graph_event(uint32_t thread, const RecordView& record, CapturedCallPtr call, uint64_t order);
  void apply_graph_events(bool all);

  StepPlace& step_place(uint32_t step);
  Position root(uint32_t step) { return step_place(step).root; }
  Position no_module(uint32_t step);
  const Inside& inside(Thread& thread, size_t frames);
  const Inside& around_launch(Thread& thread, bool is_graph);
  void enter_frame(Thread& thread, size_t index, const Inside& outer, Inside& here);
  void add_frame(const Thread& thread, size_t index, const Inside& outer, Inside& here);
  uint32_t add_op(const Thread& thread, size_t index, uint32_t outer);
  static Placed& placed_in(Frame& frame, uint32_t step);
  const CallStack& call_stack(uint32_t id);
  std::unique_ptr<Meaning> trace_meaning(const std::string& trace);
  const Meaning* frame_meaning(const std::string& label);
  void enter_stack(Thread& thread);
  void enter_known_stack(Thread& thread, const CallStack& stack);
  void enter_frames(Thread& thread, std::span<const Meaning* const> calls, size_t inside = 0);
  static void leave_stack(Thread& thread) {
    if (thread.native_frames > 0) take_off_stack(thread);
  }
  static void take_off_stack(Thread& thread);
  CapturedCallPtr capture(Thread& thread);
  CapturedCallPtr captured_call(const Frame& frame, CapturedCallPtr outer);
  uint64_t full_sequence(uint32_t low) const;
  Meaning meaning_of(NvtxMessage message);
  const Meaning* meaning(uint32_t string);
  ContextMeaning& meaning_of_context(uint32_t context, const ContextInfo* info);
  const Meaning* joined(const Meaning* outer, const Meaning* inner);
  bool shown(Thread& thread) const;

  void read_site(const RecordView& record);
  void read_activity(const Chunk& chunk);
  void join(const Activity& activity);
  void attribute(const Activity& activity, const Launch& launch);
  void attribute_replay(const Activity& activity, const GraphLaunchPtr& launch);
  Position replay_place(GraphLaunch& launch, const CapturedCall* call);
  const std::vector<OpenLayer>& all_layers(GraphLaunch& launch);
  void set_apart(const Activity& activity, GraphLaunch& launch, Placement placement);
  void emit(const Activity& activity, Position parent, uint32_t trace, Order order, Placement placement, uint32_t step);
  void emit_unlaunched(const Activity& activity);
  void add_device_time(const Activity& activity, uint32_t row, Order order, uint32_t step, Position root);
  bool is_communication(uint32_t name);
  void remember_anchor(const Activity& activity, const GraphLaunchPtr& launch);
  void resolve_conditionals(bool all);
  GraphLaunchPtr enclosing_launch(const Activity& activity) const;
  void forget_old();
  void forget_answered();
  void add_libraries();
  void add_missing();

  LayerTree& tree_;
  Account& account_;
  Observer observer_;
  PhaseSource phases_;
  StackView view_;
  ProcessDefinitions definitions_;
  GraphModel graphs_;
  // Graph events of threads that are ahead of others, by sequence, until those before them are read.
  std::map<uint64_t, std::function<void()>> graph_events_;
  uint64_t next_graph_event_ = 0;
  std::vector<std::pair<Activity, GraphLaunchPtr>> waiting_for_graph_;  // replays whose graph may be among these
  std::unordered_map<uint32_t, Thread> threads_;
  std::unordered_map<uint32_t, std::unique_ptr<Meaning>> meanings_;  // by string
  std::vector<ContextMeaning> context_meanings_;                     // by context
  ContextMeaning unknown_context_;
  uint32_t meaning_count_ = 0;
  FlatMap<uint64_t, const Meaning*> joined_{FlatMap<uint64_t, const Meaning*>::Keys::kMixed};  // of outer << 32 | inner call, by Meaning::id
  std::vector<std::unique_ptr<Meaning>> joined_meanings_;
  std::unique_ptr<Meaning> other_range_;  // of kOtherContext
  FlatMap<uint64_t, uint32_t> op_traces_{FlatMap<uint64_t, uint32_t>::Keys::kMixed};  // of trace outside << 32 | op
  std::unordered_map<uint32_t, CallStack> call_stacks_;  // by stack
  std::unordered_map<std::string, std::unique_ptr<Meaning>> frame_meanings_;
  // Where kernels are launched from: a kernel is of one library, so what one of its launches shows holds for all.
  std::unordered_map<uint32_t, uint32_t> kernel_libraries_;  // string id of the mangled name to LayerTree::name_id
  struct KernelUse {
    double us = 0;
    uint64_t count = 0;
  };
  FlatMap<uint64_t, KernelUse> kernel_uses_{FlatMap<uint64_t, KernelUse>::Keys::kMixed};  // root in the summary << 32 | mangled
  std::unordered_map<uint32_t, StepPlace> step_places_;  // by step
  StepPlace* last_place_ = nullptr;                      // of these,
  uint32_t last_step_ = 0;                               // ... this step's
  std::optional<DeviceTime> device_time_;                // if asked for
  KernelGroups groups_;
  std::vector<char> communication_;                      // by name: 'y', 'n', 0: not asked yet
  FlatMap<uint32_t, uint64_t> missing_in_step_;          // kernel launches without their kernel, by step
  uint64_t order_ = 0;
  bool finishing_ = false;

  FlatMap<uint32_t, Launch> launches_;                             // by correlation id
  std::unordered_map<uint32_t, GraphLaunchPtr> graph_launches_;     // those of graphs, with what belongs to them alone
  std::deque<std::pair<uint32_t, uint64_t>> launch_ages_;          // correlation id and order, oldest first
  std::unordered_map<uint32_t, std::vector<Activity>> unlaunched_;  // activities whose launch record is still to come
  std::deque<uint32_t> unlaunched_ages_;
  size_t unlaunched_count_ = 0;  // of activities
  GraphLaunchPtr last_replay_;  // of a kernel,
  uint32_t last_correlation_ = 0;  // ... with this correlation id
  std::vector<OpenLayer> last_native_places_;  // of a graph launch,
  uint32_t last_native_step_ = 0;              // ... in this step
  std::deque<GraphLaunchPtr> replays_;  // graph launches with entered calls, oldest first
  size_t replayed_calls_ = 0;           // of them all
  size_t last_replayed_ = 0;            // of the one before
  uint32_t captured_calls_ = 0;

  // Kernels of conditional bodies carry no correlation id; those of the same executable graph around them do.
  std::unordered_map<uint32_t, std::map<uint64_t, GraphLaunchPtr>> anchors_;  // by executable graph, by start
  std::unordered_map<uint32_t, GraphLaunchPtr> last_launches_;               // by executable graph
  std::vector<Activity> conditionals_;

  struct Site {
    Activity activity;
    bool defined = false;
  };
  std::vector<Site> sites_;  // of the chunk at hand, by id
  FlatMap<uint32_t, uint32_t> kernel_names_;  // string id of the mangled name to LayerTree::name_id
};

}  // namespace lamina
