// Call stacks of launches. While the thread is at such a launch or node, they stand as calls inside of its open ranges:
// in one op that the trace names, or as layers, one for each function.
#include <algorithm>
#include <span>

#include "report/attribution/attribution.h"
#include "report/attribution/native_frames.h"

namespace lamina {

using namespace format;

namespace {

constexpr size_t kMaxTracePython = 3;  // functions

CodePlace place_of(const ProcessDefinitions& definitions, const CodeInfo& code) {
  auto text = [&](uint32_t string) { return string != 0 ? definitions.text(string) : std::string_view(); };
  return {text(code.module), text(code.function), text(code.file), code.line, code.is_python, code.offset};
}

// Of the PyTorch hook, where it calls the module's function inside of its range.
bool is_module_call(const CodePlace& place) {
  bool may_be = place.function.empty() || place.function.find("ModuleHook") != std::string_view::npos;
  return may_be && library_name(place.module).starts_with("lamina_hook.");
}

NvtxMessage frame_message(const std::string& label) {
  NvtxMessage message;
  message.name = message.label = label;
  return message;
}

// The call of a launcher that launches what others have written: it does not tell where a kernel comes from.
bool is_launcher(std::string_view op) { return op.ends_with(" <- __triton_launcher.so"); }

}  // namespace

const Attribution::CallStack& Attribution::call_stack(uint32_t id) {
  auto [known, added] = call_stacks_.try_emplace(id);
  if (!added) return known->second;
  CallStack& stack = known->second;
  const StackInfo* innermost = definitions_.stack(id);
  std::string_view kernel = innermost && innermost->kernel != 0 ? definitions_.text(innermost->kernel) : std::string_view();
  std::string trace, last_label, library, python;
  size_t python_functions = 0;
  for (const StackInfo* frame = innermost; frame; frame = definitions_.stack(frame->parent)) {
    const CodeInfo* code = definitions_.code(frame->code);
    if (!code) continue;
    CodePlace place = place_of(definitions_, *code);
    if (view_ != StackView::kFull && is_module_call(place)) break;  // the range of that is known: what is further out is not in it
    bool plumbing = is_plumbing(place, kernel);
    if (view_ != StackView::kFull && plumbing) continue;
    std::string label = frame_label(place, view_ == StackView::kFull ? WithLine::kYes : WithLine::kNo);
    if (label == last_label) continue;  // it calls itself
    last_label = label;
    if (view_ == StackView::kFull || !is_launcher_code(place)) stack.calls.push_back(frame_meaning(label));
    // The trace goes as far as the innermost functions in Python, if there are any.
    if (place.is_python && !plumbing && python_functions++ < kMaxTracePython) add_to_trace(python, frame_label(place, WithLine::kYes));
    if (python_functions > 0) continue;
    add_to_trace(trace, label);
    if (library.empty() && !plumbing) library = library_name(place.module);
  }
  std::ranges::reverse(stack.calls);
  if (!library.empty()) {
    add_to_trace(trace, library);
    if (innermost->kernel != 0) kernel_libraries_.try_emplace(innermost->kernel, tree_.name_id(library));
  }
  if (!python.empty()) add_to_trace(trace, python);
  stack.trace = trace_meaning(trace);
  stack.calls.push_back(stack.trace.get());
  stack.python = trace_meaning(python);
  return stack;
}

std::unique_ptr<Attribution::Meaning> Attribution::trace_meaning(const std::string& trace) {
  if (trace.empty()) return nullptr;
  NvtxMessage op = frame_message(trace);
  op.kind = NvtxMessage::Kind::kOp;
  return std::make_unique<Meaning>(meaning_of(std::move(op)));
}

const Attribution::Meaning* Attribution::frame_meaning(const std::string& label) {
  std::unique_ptr<Meaning>& known = frame_meanings_[label];
  if (!known) known = std::make_unique<Meaning>(meaning_of(frame_message(label)));
  return known.get();
}

// The calls of the stack go on from the launch before as far as they are the same.
void Attribution::enter_stack(Thread& thread) {
  if (thread.frames_inside > 0) leave_stack(thread);
  const CallStack* stack = thread.stack != 0 ? &call_stack(thread.stack) : nullptr;
  if (!stack || !stack->trace) return leave_stack(thread);
  enter_known_stack(thread, *stack);
}

void Attribution::enter_known_stack(Thread& thread, const CallStack& stack) {
  std::span<const Frame> ranges(thread.frames.data(), thread.frames.size() - thread.native_frames);
  auto innermost = std::find_if(ranges.rbegin(), ranges.rend(), [](const Frame& frame) {
    return frame.is_layer() || frame.is(NvtxMessage::Kind::kOp);
  });
  bool in_range = innermost != ranges.rend();
  bool in_op = in_range && innermost->is(NvtxMessage::Kind::kOp);
  bool always_layers = view_ == StackView::kLayers || view_ == StackView::kFull;
  if (in_op && !always_layers) {
    leave_stack(thread);
    if (stack.python && is_launcher(innermost->meaning->message.name)) enter_frames(thread, {{stack.python.get()}}, 1);
    return;
  }
  std::span<const Meaning* const> calls = stack.calls;
  if (!always_layers && (in_range || view_ != StackView::kUsual)) calls = calls.last(1);  // the trace
  if (in_op) calls = calls.first(calls.size() - 1);
  enter_frames(thread, calls);
}

// `inside`: how many of the ranges stay inside of them.
void Attribution::enter_frames(Thread& thread, std::span<const Meaning* const> calls, size_t inside) {
  size_t ranges = thread.frames.size() - thread.native_frames - inside;
  size_t same = 0;
  while (same < calls.size() && same < thread.native_frames && thread.frames[ranges + same].meaning == calls[same]) ++same;
  auto at = thread.frames.begin() + static_cast<long>(ranges + same);
  thread.frames.erase(at, thread.frames.end() - static_cast<long>(inside));
  thread.forget(ranges + same);
  settle(thread);
  for (const Meaning* call : calls.subspan(same)) {
    Frame frame{};
    frame.meaning = call;
    frame.order = order_;
    frame.is_native = true;
    frame.settled = true;
    thread.frames.insert(thread.frames.end() - static_cast<long>(inside), std::move(frame));
  }
  thread.native_frames = calls.size();
  thread.frames_inside = inside;
}

void Attribution::take_off_stack(Thread& thread) {
  auto end = thread.frames.end() - static_cast<long>(thread.frames_inside);
  auto begin = end - static_cast<long>(thread.native_frames);
  thread.forget(static_cast<size_t>(begin - thread.frames.begin()));
  thread.frames.erase(begin, end);
  thread.native_frames = thread.frames_inside = 0;
}

}  // namespace lamina
