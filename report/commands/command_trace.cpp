// `lamina trace`: a profile as a timeline for ui.perfetto.dev and chrome://tracing.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <memory>

#include "report/commands/commands.h"
#include "report/errors.h"
#include "report/load/profile.h"
#include "report/output.h"
#include "report/output_stream.h"
#include "report/render/timeline.h"
#include "report/render/trace_json.h"

namespace lamina {
namespace {

struct TraceOptions {
  std::string profile;
  std::string output;
  std::string phase;
  std::optional<uint32_t> rank;
  std::string names = "short";
  bool force = false;
};

std::string default_name(std::string profile) {
  while (profile.size() > 1 && profile.back() == '/') profile.pop_back();
  return profile + ".trace.json.gz";
}

// When the first process of the profile started. CLOCK_REALTIME, ns.
uint64_t start_of(const std::string& profile) {
  uint64_t start = UINT64_MAX;
  for (const std::string& path : profile_files(profile)) {
    try {
      start = std::min(start, ProfileFile(path).header().start_time);
    } catch (const InputError&) {  // told when it is read
    }
  }
  return start != UINT64_MAX ? start : 0;
}

std::string phase_list(const PhaseChoice& phases) {
  std::string list;
  for (const auto& [phase, steps] : phases.seen()) {
    list += (list.empty() ? "" : ", ") + phase;
    if (steps > 1) list += fmt::format(" ({} steps)", steps);
  }
  return list.empty() ? "none" : list;
}

// Shows on a terminal how much of each file is read.
class Progress {
 public:
  ~Progress() {
    if (shown_ >= 0) fmt::print(stderr, "\r\033[K");
  }
  void begin(const ProfileFile& file) {
    size_ = std::max<uint64_t>(file.size(), 1);
    shown_ = -1;
  }
  void at(uint64_t offset) {
    auto percent = static_cast<int>(offset * 100 / size_);
    if (!is_terminal_ || percent == shown_) return;
    fmt::print(stderr, "\rreading {}%", shown_ = percent);
  }

 private:
  bool is_terminal_ = isatty(STDERR_FILENO);
  uint64_t size_ = 1;
  int shown_ = -1;
};

void write_timeline(const TraceOptions& options, const std::string& path) {
  uint64_t start = start_of(options.profile);
  OutputStream output(path, options.force);
  nlohmann::ordered_json about = {{"profile", options.profile}, {"written by", "lamina " LAMINA_VERSION}, {"start in ns since 1970", std::to_string(start)}};
  TraceJson json([&](std::string_view text) { output.write(text); }, about);
  TimelineEvents events = json.events();
  Timeline timeline({.start = start, .phase = options.phase, .full_names = options.names == "full"}, events);
  LayerTree tree(timeline.tree_options());
  ProfileObserver observer = timeline.observer(tree);
  Progress progress;
  auto begin = std::move(observer.begin);
  observer.begin = [&](const ProfileFile& file) { progress.begin(file), begin(file); };
  auto record = std::move(observer.record);
  observer.record = [&](const RecordView& view, const ProcessDefinitions& definitions, const Chunk& chunk) {
    progress.at(chunk.offset);
    record(view, definitions, chunk);
  };
  tell_problems(read_profile(options.profile, tree, options.rank, observer));
  if (!timeline.phases().found()) {
    throw InputError(fmt::format("no phase '{}' in {}: it has {}", options.phase, options.profile, phase_list(timeline.phases())));
  }
  json.finish();
  output.finish();
  if (timeline.activities() == 0) print_message("no GPU work in " + options.profile);
  if (timeline.untimed() > 0) print_message(fmt::format("{} kernels or memory operations without a time are not shown", timeline.untimed()));
  if (timeline.left_out() > 0) print_message(fmt::format("{} slices are not shown: more than {} at once on one stream or thread", timeline.left_out(), kMaxLanes));
}

void run_trace(const TraceOptions& options) {
  std::string path = options.output.empty() ? default_name(options.profile) : options.output;
  write_timeline(options, path);
  if (path != "-") print_message(fmt::format("wrote {}: open it in https://ui.perfetto.dev or chrome://tracing", path));
}

}  // namespace

void add_trace_command(CLI::App& command) {
  auto options = std::make_shared<TraceOptions>();
  command.add_option("PROFILE", options->profile, "Profile folder, or one file of it")->required();
  command.add_option("-o,--output", options->output, "File to write, .json or .json.gz; - for standard output (default: PROFILE.trace.json.gz)");
  command.add_option("--phase", options->phase, "A phase such as decode, or one step of it such as decode_7; default: all");
  command.add_option("--rank", options->rank, "Only the process of this rank");
  command.add_option("--names", options->names, "short: kernels without what tells nothing (default); full: as they are")
      ->check(CLI::IsMember({"short", "full"}));
  command.add_flag("--force", options->force, "Replace the file if it is there");
  command.callback([options] { run_trace(*options); });
}

}  // namespace lamina
