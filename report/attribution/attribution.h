// Gives every GPU activity of one process its place in the layer tree: replays the threads' streams, joins launches with
// activity by correlation id, and graph replays with the places where their nodes were created.
#pragma once

#include <array>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "inject/record.h"
#include "report/attribution/graph_model.h"
#include "report/attribution/nvtx_message.h"
#include "report/records/account.h"
#include "report/records/definitions.h"
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
      : tree_(tree), account_(account), observer_(std::move(observer)), phases_(phases), view_(view) {}

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
  };
  struct Frame {
    uint32_t call;     // number among the thread's calls
    const Meaning* meaning;
    bool is_phase;      // which is no layer
    bool is_native;     // no range: of the native call stack of the launch at hand
    bool settled;       // only the innermost call may not be: the next may be its twin
    bool has_twin;      // a call inside of it is the same call, told by another: it counts once, here
    uint32_t twin_of;   // number of the call outside that is the same; 0: none
    Position home;   // where it was opened
    std::array<Placed, 4> in_steps;  // where it is in the last phase steps it was seen in, which may nest,
    Placed idle;                     // and in the last of startup and between phases
    uint64_t begin;  // host clock
    uint64_t order;
    CapturedCallPtr captured;  // made when the first node is created in it

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
  };
  // A native call stack: the functions that are shown, outermost first, and the trace that they are.
  struct CallStack {
    std::vector<const Meaning*> layers;
    std::unique_ptr<Meaning> trace;   // null: nothing of it is shown
    std::unique_ptr<Meaning> python;  // what of it is in Python
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
    uint32_t exec = 0;
    uint64_t graph_sequence = 0;  // how many graph events had happened
    uint64_t order = 0;
    uint32_t trace = 0;        // of the ops around it
    uint32_t layer_trace = 0;  // of the innermost layer
    bool native_trace = false;  // of its call stack
    Position position;
    std::vector<OpenLayer> layers;         // graph launches: by ranges
    std::vector<LayerName> native_layers;  // graph launches: the functions of the call stack, inside of these,
    std::vector<OpenLayer> native_places;  // ... once something of no range was replayed
    std::unordered_map<const CapturedCall*, Position> replayed;     // graph launches: calls entered so far
    std::array<Position, 6> apart;                                  // rows for what has no layer, by Placement
    uint64_t first_start = UINT64_MAX;                              // of its kernels

    uint32_t own_trace() const { return trace != 0 ? trace : layer_trace; }
  };
  using LaunchPtr = std::shared_ptr<Launch>;

  void read_thread(const Chunk& chunk);
  void read_thread_record(uint32_t id, Thread& thread, const RecordView& record);
  void restore(Thread& thread, const RecordView& record);
  void push(Thread& thread, uint32_t context, uint64_t time);
  void pop(Thread& thread, uint32_t index, uint64_t time);
  void stand_in(Thread& thread, uint32_t context);
  void settle(Thread& thread);
  void join_twin(Thread& thread, Frame& inner);
  void launch(Thread& thread, const RecordView& record);
  void graph_record(uint32_t id, Thread& thread, const RecordView& record);
  void apply_graph_event(uint32_t thread, const RecordView& record, CapturedCallPtr call, uint64_t order);
  void apply_graph_events(bool all);

  Position root(uint32_t step);
  Position no_module(uint32_t step);
  Position place(Thread& thread, size_t frames);
  static Placed& placed_in(Frame& frame, uint32_t step);
  const CallStack& call_stack(uint32_t id);
  std::unique_ptr<Meaning> trace_meaning(const std::string& trace);
  const Meaning* frame_meaning(const std::string& label);
  void enter_stack(Thread& thread);
  void enter_frames(Thread& thread, std::span<const Meaning* const> calls, size_t inside = 0);
  static void leave_stack(Thread& thread);
  CapturedCallPtr capture(Thread& thread);
  uint32_t trace_of(const Thread& thread);
  uint64_t full_sequence(uint32_t low) const;
  Meaning meaning_of(NvtxMessage message);
  const Meaning* meaning(uint32_t string);
  const Meaning* joined(const Meaning* outer, const Meaning* inner);
  bool shown(uint32_t step) const;

  void read_site(const RecordView& record);
  void read_activity(const Chunk& chunk);
  void join(const Activity& activity);
  void attribute(const Activity& activity, Launch& launch);
  void attribute_replay(const Activity& activity, const LaunchPtr& launch);
  Position replay_place(Launch& launch, const CapturedCallPtr& call);
  const std::vector<OpenLayer>& all_layers(Launch& launch);
  void set_apart(const Activity& activity, Launch& launch, Placement placement);
  void emit(const Activity& activity, Position parent, uint32_t trace, Order order, Placement placement, uint32_t step);
  void emit_unlaunched(const Activity& activity);
  void remember_anchor(const Activity& activity, const LaunchPtr& launch);
  void resolve_conditionals(bool all);
  LaunchPtr enclosing_launch(const Activity& activity) const;
  void forget_old();
  void add_libraries();

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
  std::vector<std::pair<Activity, LaunchPtr>> waiting_for_graph_;  // replays whose graph may be among these
  std::unordered_map<uint32_t, Thread> threads_;
  std::unordered_map<uint32_t, std::unique_ptr<Meaning>> meanings_;  // by string
  std::map<std::pair<const Meaning*, const Meaning*>, std::unique_ptr<Meaning>> joined_;  // of outer and inner call
  std::unique_ptr<Meaning> other_range_;  // of kOtherContext
  std::unordered_map<uint32_t, CallStack> call_stacks_;  // by stack
  std::unordered_map<std::string, std::unique_ptr<Meaning>> frame_meanings_;
  // Where kernels are launched from: a kernel is of one library, so what one of its launches shows holds for all.
  std::unordered_map<uint32_t, uint32_t> kernel_libraries_;  // string id of the mangled name to LayerTree::name_id
  struct KernelUse {
    double us = 0;
    uint64_t count = 0;
  };
  std::unordered_map<uint64_t, KernelUse> kernel_uses_;  // root in the summary << 32 | mangled
  std::unordered_map<uint32_t, Position> roots_;      // by step
  std::unordered_map<uint32_t, Position> no_module_;  // by step
  uint64_t order_ = 0;
  bool finishing_ = false;

  std::unordered_map<uint32_t, LaunchPtr> launches_;               // by correlation id
  std::deque<std::pair<uint32_t, uint64_t>> launch_ages_;          // correlation id and order, oldest first
  std::unordered_map<uint32_t, std::vector<Activity>> unlaunched_;  // activities whose launch record is still to come
  std::deque<uint32_t> unlaunched_ages_;
  size_t unlaunched_count_ = 0;  // of activities
  std::vector<OpenLayer> last_native_places_;  // of a graph launch,
  uint32_t last_native_step_ = 0;              // ... in this step
  std::deque<LaunchPtr> replays_;  // graph launches with entered calls, oldest first
  size_t replayed_calls_ = 0;      // of them all

  // Kernels of conditional bodies carry no correlation id; those of the same executable graph around them do.
  std::unordered_map<uint32_t, std::map<uint64_t, LaunchPtr>> anchors_;  // by executable graph, by start
  std::unordered_map<uint32_t, LaunchPtr> last_launches_;               // by executable graph
  std::vector<Activity> conditionals_;

  // What the sites of the chunk at hand are.
  std::unordered_map<uint32_t, Activity> sites_;
  std::unordered_map<uint32_t, uint32_t> kernel_names_;  // string id of the mangled name to LayerTree::name_id
};

}  // namespace lamina
