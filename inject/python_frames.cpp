#include "inject/python_frames.h"

#include <dlfcn.h>
#include <link.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "inject/log.h"

namespace lamina {
namespace {

constexpr size_t kTypeOffset = 8;             // PyObject.ob_type
constexpr size_t kBytes = 32;                 // PyBytesObject.ob_sval
constexpr size_t kStringLength = 16;          // PyASCIIObject.length, in characters
constexpr size_t kStringState = 32;           // of bits
constexpr unsigned kCompact = 1u << 5;        // the characters follow in the object
constexpr size_t kStringHash = 24;            // PyASCIIObject.hash; -1: not computed yet
constexpr uint64_t kNoHash = ~uint64_t{0};
constexpr size_t kMaxSteps = 1000;            // of a check
constexpr size_t kMaxEncoded = 4;             // bytes of a character
constexpr std::byte kOwnedByC{3};             // FRAME_OWNED_BY_CSTACK: stands for a call from C since 3.12
constexpr int kMembersSlot = 72;              // Py_tp_members (typeslots.h)

// PyMemberDef (structmember.h)
struct Member {
  const char* name;
  int type;
  ptrdiff_t offset;
  int flags;
  const char* text;
};

template <typename Value>
Value load(const void* object, size_t offset) {
  Value value;
  memcpy(&value, static_cast<const std::byte*>(object) + offset, sizeof(value));
  return value;
}

const std::byte* pointer(const void* object, size_t offset) { return load<const std::byte*>(object, offset); }

// A load that fails where nothing is mapped. The kernel reads the signal set before it finds that there is no such way to set
// it; unlike the calls made for reading memory, no container forbids this one.
bool copy_pointer(const void* object, size_t offset, const std::byte** value) {
  constexpr int kNoSuchWay = -1;
  auto* address = static_cast<const std::byte*>(object) + offset;
  bool readable = syscall(SYS_rt_sigprocmask, kNoSuchWay, address, nullptr, sizeof(*value)) == -1 && errno == EINVAL;
  if (readable) *value = pointer(object, offset);
  return readable;
}

template <typename Function>
bool look_up(Function& function, const char* name) {
  function = reinterpret_cast<Function>(dlsym(RTLD_DEFAULT, name));
  return function != nullptr;
}

// A character as UTF-8; gives how many bytes.
size_t encode(uint32_t c, char* to) {
  auto tail = [&c](int shift) { return static_cast<char>(0x80 | (c >> shift & 0x3f)); };
  if (c >= 0xd800 && c < 0xe000) c = 0xfffd;  // half a character
  if (c < 0x80) return to[0] = static_cast<char>(c), 1;
  if (c < 0x800) return to[0] = static_cast<char>(0xc0 | c >> 6), to[1] = tail(0), 2;
  if (c < 0x10000) return to[0] = static_cast<char>(0xe0 | c >> 12), to[1] = tail(6), to[2] = tail(0), 3;
  return to[0] = static_cast<char>(0xf0 | c >> 18), to[1] = tail(12), to[2] = tail(6), to[3] = tail(0), 4;
}

// The size of an exported function; 0: not known.
size_t size_of(const void* function) {
  Dl_info info;
  const ElfW(Sym)* symbol = nullptr;
  bool found = dladdr1(function, &info, reinterpret_cast<void**>(const_cast<ElfW(Sym)**>(&symbol)), RTLD_DL_SYMENT) != 0;
  return found && symbol && info.dli_saddr == function ? symbol->st_size : 0;
}

}  // namespace

const PythonFrames::Layout PythonFrames::kLayouts[] = {
    // minor, thread_frames, innermost, code, previous, instruction, owner, instructions, characters, anchors, next_anchor
    {10, 24, kDirect, 32, 24, 96, 0, 0, 48, 48, 8},
    {11, 56, 8, 32, 48, 56, 68, 184, 48, 56, 16},
    {12, 56, 0, 0, 8, 56, 70, 192, 40, kDirect, 0},  // since then a frame of C's stands for the call
    {13, 72, kDirect, 0, 8, 56, 70, 200, 40, kDirect, 0},
};

// ---- the interpreter

bool PythonFrames::find_interpreter() {
  if (state_.load(std::memory_order_relaxed) != State::kUnknown) return false;
  look_for_interpreter();
  dlerror();  // of what was not found: the program may ask for its own
  return has_interpreter();
}

void PythonFrames::look_for_interpreter() {
  const char* (*version)();
  int (*is_initialized)();
  if (!look_up(version, "Py_GetVersion") || !look_up(is_initialized, "Py_IsInitialized") || !is_initialized()) return;
  int minor = strncmp(version(), "3.", 2) == 0 ? atoi(version() + 2) : 0;
  auto layout = std::ranges::find(kLayouts, minor, &Layout::minor);
  void* evaluation = nullptr;
  bool usable = layout != std::end(kLayouts) && !strstr(version(), "free-threading") &&
                look_up(this_thread_state_, "PyGILState_GetThisThreadState") && look_up(line_of_, "PyCode_Addr2Line") &&
                look_up(length_, "PyUnicode_GetLength") && look_up(character_, "PyUnicode_ReadChar") &&
                look_up(code_type_, "PyCode_Type") && look_up(type_flags_, "PyType_GetFlags") &&
                (look_up(is_finalizing_, "Py_IsFinalizing") || look_up(is_finalizing_, "_Py_IsFinalizing"));
  if (usable) {
    layout_ = layout;
    name_ = member_offset("co_qualname");
    if (name_ == 0) name_ = member_offset("co_name");
    file_ = member_offset("co_filename");
    first_line_ = member_offset("co_firstlineno");
    lines_ = member_offset("co_linetable");
  }
  if (usable && look_up(evaluation, "_PyEval_EvalFrameDefault")) {
    evaluation_begin_ = reinterpret_cast<uintptr_t>(evaluation);
    evaluation_size_ = size_of(evaluation);
  }
  usable = usable && name_ != 0 && file_ != 0 && first_line_ != 0 && lines_ != 0;
  if (!usable) log_debug("no Python frames in call stacks: Python %s is not known", version());
  state_.store(usable ? State::kUnchecked : State::kUnusable, std::memory_order_release);
}

// Where a code object keeps an attribute; 0: it has none of this name.
size_t PythonFrames::member_offset(const char* name) const {
  void* (*slot)(const void*, int);
  if (!look_up(slot, "PyType_GetSlot")) return 0;
  auto* member = static_cast<const Member*>(slot(code_type_, kMembersSlot));
  for (; member && member->name; ++member) {
    if (!strcmp(member->name, name)) return static_cast<size_t>(member->offset);
  }
  return 0;
}

// An interpreter with these versions' numbers may have been changed. Every pointer that read() follows, with its type.
bool PythonFrames::check(const std::byte* thread) const {
  const std::byte *frame = nullptr, *code = nullptr, *name = nullptr, *file = nullptr, *type = nullptr;
  if (!copy_pointer(thread, layout_->thread_frames, &frame)) return false;
  if (layout_->innermost != kDirect && !copy_pointer(frame, layout_->innermost, &frame)) return false;
  const std::byte* anchor = nullptr;
  if (layout_->anchors != kDirect && !copy_pointer(thread, layout_->anchors, &anchor)) return false;
  for (size_t steps = 0; frame; ++steps) {
    if (steps == kMaxSteps) return true;
    if (anchor && !copy_pointer(anchor, layout_->next_anchor, &anchor)) return false;
    const std::byte* owner = nullptr;
    if (!copy_pointer(frame, layout_->owner / 8 * 8, &owner) || !copy_pointer(frame, layout_->code, &code)) return false;
    bool is_code = code && copy_pointer(code, kTypeOffset, &type) && type == code_type_;
    if (!skips(frame)) {
      if (!is_code || !copy_pointer(code, name_, &name) || !copy_pointer(code, file_, &file)) return false;
      for (const std::byte* string : {name, file}) {
        if (!copy_pointer(string, kTypeOffset, &type) || !copy_pointer(type, 0, &code) || !is_string(string)) return false;
      }
    }
    if (!copy_pointer(frame, layout_->previous, &frame)) return false;
  }
  return true;
}

// ---- frames

const std::byte* PythonFrames::innermost(const std::byte* thread) const {
  const std::byte* frames = pointer(thread, layout_->thread_frames);
  return layout_->innermost == kDirect || !frames ? frames : pointer(frames, layout_->innermost);
}

bool PythonFrames::skips(const std::byte* frame) const { return layout_->minor >= 12 && frame[layout_->owner] == kOwnedByC; }

size_t PythonFrames::read(std::span<PythonFrame> frames) {
  State state = state_.load(std::memory_order_acquire);
  if (state < State::kUnchecked) return 0;
  if (is_finalizing_()) return 0;  // then the states of other threads are freed, and soon this one
  auto* thread = static_cast<const std::byte*>(this_thread_state_());
  if (!thread) return 0;
  if (state == State::kUnchecked) [[unlikely]] {
    bool known = check(thread);
    if (!known) log_debug("no Python frames in call stacks: this Python is not laid out as its version is");
    state_.store(known ? State::kKnown : State::kUnusable, std::memory_order_relaxed);
    if (!known) return 0;
  }
  size_t count = 0;
  const std::byte* anchor = layout_->anchors != kDirect ? pointer(thread, layout_->anchors) : nullptr;
  for (const std::byte* frame = innermost(thread); frame && count < frames.size(); frame = pointer(frame, layout_->previous)) {
    if (skips(frame)) continue;
    PythonFrame& found = frames[count++];
    read_frame(frame, &found);
    found.anchor = anchor_of(frame, anchor);
    if (found.anchor && anchor) anchor = pointer(anchor, layout_->next_anchor);
  }
  return count;
}

void PythonFrames::read_frame(const std::byte* frame, PythonFrame* found) const {
  found->code = pointer(frame, layout_->code);
  found->name = pointer(found->code, name_);
  found->file = pointer(found->code, file_);
  if (layout_->minor == 10) {
    constexpr uint32_t kInstructionBytes = 2;
    found->offset = load<uint32_t>(frame, layout_->instruction) * kInstructionBytes;
  } else {
    auto* instructions = static_cast<const std::byte*>(found->code) + layout_->instructions;
    found->offset = static_cast<uint32_t>(pointer(frame, layout_->instruction) - instructions);
  }
  uint64_t place = reinterpret_cast<uintptr_t>(found->code) + found->offset + (load<uint64_t>(found->code, first_line_) << 48);
  auto lines = load<uint64_t>(pointer(found->code, lines_), kBytes);  // the first of them tell where its lines begin
  found->hash = PythonFrame::mix(place + lines) ^ std::rotl(hash_of(found->name), 20) ^ hash_of(found->file);
}

// `cframe`: of the innermost evaluation that no frame further in belongs to.
const void* PythonFrames::anchor_of(const std::byte* frame, const std::byte* cframe) const {
  if (layout_->minor == 10) return cframe;  // every call is an evaluation
  const std::byte* previous = pointer(frame, layout_->previous);
  if (layout_->minor == 11) {
    if (!cframe || frame[layout_->owner] == std::byte{0}) return nullptr;
    // A generator that passes an exception on to another is called, and not evaluated.
    const std::byte* around = pointer(cframe, layout_->next_anchor);
    return !around || pointer(around, layout_->innermost) == previous ? cframe : nullptr;
  }
  return previous && skips(previous) ? previous : nullptr;
}

bool PythonFrames::is_string(const void* object) const {
  constexpr unsigned long kStringSubclass = 1ul << 28;  // Py_TPFLAGS_UNICODE_SUBCLASS
  return (type_flags_(pointer(object, kTypeOffset)) & kStringSubclass) != 0;
}

// Of its length and last characters, if Python has none yet. What is read lies inside of the object, of whatever width.
uint64_t PythonFrames::hash_of(const void* string) const {
  auto known = load<uint64_t>(string, kStringHash);
  if (known != kNoHash) return known;
  if ((load<unsigned>(string, kStringState) & kCompact) == 0) return reinterpret_cast<uintptr_t>(string);
  auto length = load<uint64_t>(string, kStringLength);
  uint64_t hash = length;
  size_t words = std::clamp<size_t>(length / sizeof(uint64_t), 1, 4);
  size_t end = layout_->characters + std::max<size_t>(length, sizeof(uint64_t));
  for (size_t i = 1; i <= words; ++i) hash = PythonFrame::mix(hash ^ load<uint64_t>(string, end - i * sizeof(uint64_t)));
  return hash;
}

uint32_t PythonFrames::line(const PythonFrame& frame) const {
  int line = line_of_(frame.code, static_cast<int>(frame.offset));
  return line > 0 ? static_cast<uint32_t>(line) : 0;
}

std::string_view PythonFrames::text_of(const void* string, std::span<char> room) const {
  size_t used = 0;
  long length = length_(string);
  for (long i = 0; i < length && used + kMaxEncoded <= room.size(); ++i) used += encode(character_(string, i), &room[used]);
  return {room.data(), used};
}

}  // namespace lamina
