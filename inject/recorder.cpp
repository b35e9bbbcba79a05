#include "inject/recorder.h"

#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <ctime>
#include <future>
#include <thread>
#include <utility>

#include "inject/callbacks.h"
#include "inject/guarded.h"
#include "inject/log.h"
#include "inject/process_info.h"
#include "inject/ranges.h"

namespace lamina {

using namespace format;

namespace {

// A killed program loses at most what this leaves unwritten, and the buffers CUPTI still holds.
constexpr auto kRoundInterval = std::chrono::milliseconds(250);
constexpr int kRoundsPerFlush = 2;
constexpr int kRoundsPerClockPair = 40;

constexpr uint32_t kFlushForced = 1;  // CUPTI_ACTIVITY_FLAG_FLUSH_FORCED

std::string default_folder() {
  char date[32];
  time_t now = time(nullptr);
  tm local;
  localtime_r(&now, &local);
  strftime(date, sizeof(date), "%Y%m%d-%H%M%S", &local);
  return "lamina-" + program_name() + "-" + date + "-" + std::to_string(getpid());
}

}  // namespace

constinit thread_local ThreadLog* Recorder::current_log = nullptr;

Recorder* const Recorder::instance_ = new Recorder;

Recorder::Recorder() {
  // What the thread left open ends with it.
  pthread_key_create(&thread_end_key_, [](void* log) {
    if (!instance().off()) end_thread(instance(), *static_cast<ThreadLog*>(log));
    current_log = nullptr;
    static_cast<ThreadLog*>(log)->ended.store(true, std::memory_order_release);
  });
  pool_.on_low = [this] {
    drain_asked_.store(true, std::memory_order_relaxed);
    wake_.notify_one();
  };
  pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
}

ThreadLog* Recorder::new_thread_log() {
  State state = state_.load(std::memory_order_acquire);
  if (state == State::kOff) return nullptr;
  Busy busy;
  auto* log = guarded([this] { return new ThreadLog(threads_.fetch_add(1), static_cast<uint32_t>(syscall(SYS_gettid)), pool_, steps); });
  if (!log) return nullptr;
  current_log = log;
  ThreadLog* first = logs_.load(std::memory_order_relaxed);
  do {
    log->next_log = first;
  } while (!logs_.compare_exchange_weak(first, log, std::memory_order_release, std::memory_order_relaxed));
  char name[32] = "";
  pthread_getname_np(pthread_self(), name, sizeof(name));
  definitions.add_thread(log->number(), log->tid(), name);
  pthread_setspecific(thread_end_key_, log);
  return log;
}

// ---- start

bool Recorder::start() {
  if (started_.exchange(true) || off()) return false;
  Busy busy;
  if (!start_cupti() || !open_file()) {
    state_.store(State::kOff);
    return false;
  }
  process_ = getpid();
  state_.store(State::kRecording, std::memory_order_release);
  add_process_properties(*this);
  definitions.add_clock_pair();
  collector.start(cupti);
  if (options.stacks) stacks.open();
  // The writer must not take signals meant for the program's threads.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  try {
    std::thread([this] { run_writer(); }).detach();
    atexit(at_exit);
    at_quick_exit(at_exit);
  } catch (const std::exception& error) {
    log_line("no thread for the writer (%s): nothing is recorded", error.what());
    state_.store(State::kOff);
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return !off();
}

bool Recorder::start_cupti() {
  if (!cupti.open() || !cupti.subscribe(on_callback, on_buffer_requested, on_buffer_completed)) {
    log_line("nothing is recorded: %s", cupti.problem().c_str());
    return false;
  }
  enable_callbacks(cupti);
  return true;
}

// The folder goes on to child processes, so that they write into the same profile.
bool Recorder::open_file() {
  std::string folder = options.out.empty() ? absolute_path(default_folder()) : options.out;
  if (!file_.open(folder)) {
    log_line("nothing is recorded: %s", file_.problem().c_str());
    return false;
  }
  setenv("LAMINA_OUT", folder.c_str(), 1);
  log_debug("recording to %s with %s", file_.path().c_str(), cupti.path().c_str());
  return true;
}

// ---- the writer thread

void Recorder::run_writer() {
  pthread_setname_np(pthread_self(), "lamina-writer");
  for (int round = 0; !finish_was_asked(); ++round) {
    try {
      if (round % kRoundsPerClockPair == 0) definitions.add_clock_pair();
      if (!devices_known_) devices_known_ = add_device_properties(*this);
      // The flush last: should it hang on a GPU that does, all that is there is written.
      write_round(round % kRoundsPerFlush == 1);
      if (round % kRoundsPerFlush == 0 && !off()) cupti.flush_all(0);
    } catch (const std::exception& error) {
      stop(error.what());
    }
  }
  try {
    finish();
  } catch (const std::exception& error) {
    log_line("the end of the profile is missing: %s", error.what());
  }
  // What the loader keeps for this thread of symbols that were not found would last until the thread has ended, and seem to be
  // lost if the process ends between. The first call gives the text, the second frees it.
  while (dlerror()) {
  }
  std::lock_guard lock(wake_mutex_);
  finished_ = true;
  finished_wake_.notify_all();
}

// Waits until the next round is due.
bool Recorder::finish_was_asked() {
  std::unique_lock lock(wake_mutex_);
  wake_.wait_for(lock, first_round_ ? std::chrono::milliseconds(0) : kRoundInterval,
                 [this] { return finish_asked_ || drain_asked_.load(std::memory_order_relaxed); });
  drain_asked_.store(false, std::memory_order_relaxed);
  first_round_ = false;
  return finish_asked_;
}

// Definitions are drained after what refers to them and written before.
void Recorder::write_round(bool all_activity) {
  std::lock_guard lock(write_mutex_);
  Chunks chunks = std::exchange(late_, {});
  drain(chunks, all_activity);
  describe_stacks();
  definitions.add_loss(LossKind::kActivityRecords, activity.take_lost());
  definitions.add_loss(LossKind::kSignalHandlers, Busy::take_left_out());
  std::span<const char> records = definitions.drain();
  ChunkHeader header{};
  header.kind = ChunkKind::kDefinitions;
  bool good = file_.write(header, records);
  for (auto& [chunk, bytes] : chunks) good = good && file_.write(chunk, bytes);
  if (!good) stop(file_.problem().c_str());
}

// To read the symbols of a large library takes long, so that is done beside: what the threads say meanwhile leaves their
// buffers, and is written in the next round.
void Recorder::describe_stacks() {
  if (!stacks.take_new_places()) return;
  constexpr auto kDrainInterval = std::chrono::milliseconds(10);
  constexpr auto kThreadIfThereIsOne = std::launch::async | std::launch::deferred;
  auto described = std::async(kThreadIfThereIsOne, [this] { stacks.describe_places(); });
  while (described.wait_for(kDrainInterval) == std::future_status::timeout) drain(late_, false);
  described.get();
}

// All that there is now.
void Recorder::write_all() {
  do {
    write_round(true);
  } while (!late_.empty());
}

void Recorder::drain(Chunks& chunks, bool all_activity) {
  for (ThreadLog* log = logs_.load(std::memory_order_acquire); log; log = log->next_log) drain_thread(*log, chunks);
  free_finished_threads();
  ActivityChunk activity_chunk;
  while (activity.take(activity_chunk, all_activity)) {
    ChunkHeader header{};
    header.kind = ChunkKind::kActivity;
    header.base_time = activity_chunk.base_time;
    activity_records_ += activity_chunk.activities;
    chunks.emplace_back(header, std::move(activity_chunk.records));
  }
}

void Recorder::drain_thread(ThreadLog& log, Chunks& chunks) {
  ThreadLog::Piece piece;
  while (log.drain(piece)) {
    ChunkHeader header{};
    header.kind = ChunkKind::kThread;
    header.thread = log.number();
    header.sequence = piece.sequence;
    chunks.emplace_back(header, std::move(piece.records));
  }
  definitions.add_loss(LossKind::kThreadRecords, log.take_lost());
}

// The newest log stays: threads may be putting others before it.
void Recorder::free_finished_threads() {
  ThreadLog* before = logs_.load(std::memory_order_acquire);
  while (before && before->next_log) {
    ThreadLog* log = before->next_log;
    if (log->finished()) {
      before->next_log = log->next_log;
      delete log;
    } else {
      before = log;
    }
  }
}

// Something failed for good: the program goes on, the profile ends here.
void Recorder::stop(const char* why) {
  if (state_.exchange(State::kOff) != State::kRecording) return;
  log_line("recording ends here: %s", why);
  collector.stop();
}

// ---- the end

void Recorder::at_exit() {
  Recorder& recorder = instance();
  if (recorder.off()) return;
  Busy busy;
  if (!recorder.wait_for_writer(std::chrono::duration<double>(recorder.options.exit_deadline_s))) {
    // The writer hangs in the flush: what the program's threads have said can still be written.
    std::unique_lock write_lock(recorder.write_mutex_, std::try_to_lock);
    if (write_lock.owns_lock()) {
      write_lock.unlock();
      recorder.write_all();
    }
    log_line("the last kernels did not come within %g s (LAMINA_EXIT_DEADLINE): the end of the profile is missing",
             recorder.options.exit_deadline_s);
  }
  recorder.state_.store(State::kOff);
}

// A child of vfork() runs in the memory of its parent, which goes on. A signal handler may have come while its thread held a
// lock that the writer needs, of malloc's or ours: so the wait is short, and the writer alone does the work.
void Recorder::before_immediate_exit() noexcept {
  Recorder& recorder = instance();
  bool records = recorder.state_.load(std::memory_order_acquire) == State::kRecording && getpid() == recorder.process_;
  if (!records || Busy::interrupted()) return;
  Busy busy;
  constexpr double kDeadlineS = 2;
  guarded([&] { return recorder.wait_for_writer(std::chrono::duration<double>(std::min(recorder.options.exit_deadline_s, kDeadlineS))); });
}

// Asks the writer to write the end, and waits for that.
bool Recorder::wait_for_writer(std::chrono::duration<double> deadline) {
  std::unique_lock lock(wake_mutex_);
  finish_asked_ = true;
  wake_.notify_all();
  return finished_wake_.wait_for(lock, deadline, [this] { return finished_; });
}

void Recorder::finish() {
  if (off()) return;
  if (!devices_known_) add_device_properties(*this);
  write_all();
  cupti.flush_all(kFlushForced);
  definitions.add_property("nvtx.copies", std::to_string(nvtx_copies.load()));
  if (Stacks::Cost cost = stacks.cost(); cost.count > 0) {
    definitions.add_property("stacks.unwound", std::to_string(cost.count));
    definitions.add_property("stacks.median_us", std::to_string(cost.median_us));
    definitions.add_property("stacks.slow_us", std::to_string(cost.slow_us));
  }
  definitions.add_property("nvtx.unbalanced_pops", std::to_string(unbalanced_pops.load()));
  definitions.add_clock_pair();
  write_all();
  TrailerRecord trailer{};
  trailer.header = {RecordKind::kTrailer, 0, sizeof(trailer) / 8, 0};
  trailer.activity_records = activity_records_;
  trailer.chunks = file_.chunks();
  trailer.end_time = realtime_now();
  ChunkHeader header{};
  header.kind = ChunkKind::kTrailer;
  file_.write(header, {reinterpret_cast<const char*>(&trailer), sizeof(trailer)});
}

// ---- fork

// A child of a recording process records nothing: CUDA does not work there, and CUPTI and the file are the parent's. A
// child of one that has not begun yet starts afresh should it use CUDA itself.
void Recorder::before_fork() {
  Busy::set(true);
  for (std::mutex* mutex : instance().mutexes_across_fork()) mutex->lock();
}

void Recorder::after_fork_in_parent() {
  for (std::mutex* mutex : instance().mutexes_across_fork()) mutex->unlock();
  Busy::set(false);
}

void Recorder::after_fork_in_child() {
  after_fork_in_parent();
  Recorder& recorder = instance();
  if (recorder.state_.load() == State::kRecording) recorder.state_.store(State::kOff);
  ThreadLog* before = std::exchange(current_log, nullptr);
  pthread_setspecific(recorder.thread_end_key_, nullptr);
  // Left alone, not freed: another thread may have been inside.
  if (ThreadLog* logs = recorder.logs_.exchange(nullptr)) recorder.logs_before_fork_.push_back(logs);
  recorder.steps.forget_open();
  recorder.stacks.python_end().forget_readers();
  if (!before || recorder.off()) return;
  if (ThreadLog* log = recorder.new_thread_log()) log->inherit(*before);
}

// In the order in which they are taken inside of each other.
std::array<std::mutex*, 6> Recorder::mutexes_across_fork() {
  return {&collector.mutex(), &steps.mutex(), &stacks.mutex(), &definitions.mutex(), &start_end_ranges.mutex(), &pool_.mutex()};
}

}  // namespace lamina
