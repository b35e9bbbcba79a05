// `lamina trace`: a profile as a timeline for ui.perfetto.dev and chrome://tracing.
#include <memory>
#include <nlohmann/json.hpp>

#include "report/commands/choice.h"
#include "report/commands/commands.h"
#include "report/errors.h"
#include "report/format.h"
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

void write_timeline(const TraceOptions& options, const std::string& path) {
  uint64_t start = timeline_start(options.profile);
  OutputStream output(path, options.force);
  nlohmann::ordered_json about = {{"profile", options.profile},
                                  {"written by", "lamina " LAMINA_VERSION},
                                  {"start in ns since 1970", std::to_string(start)}};
  TraceJson json([&](std::string_view text) { output.write(text); }, about);
  TimelineEvents events = json.events();
  Timeline timeline({.start = start, .phase = options.phase, .full_names = options.names == "full"}, events);
  LayerTree tree(timeline.tree_options());
  tell_problems(read_profile(options.profile, tree, options.rank, timeline.observer(tree)));
  if (!timeline.phases().found()) {
    LayerReport report;
    tree.finish(report);
    throw InputError(fmt::format("no phase '{}' in {}: it has {}", options.phase, options.profile, phase_list(report)));
  }
  json.finish();
  output.finish();
  if (timeline.activities() == 0) print_message("no GPU work in " + options.profile);
  if (timeline.untimed() > 0)
    print_message(fmt::format("{} kernels or memory operations without a time are not shown", timeline.untimed()));
  if (timeline.left_out() > 0)
    print_message(fmt::format("{} slices are not shown: more than {} at once on one stream or thread",
                              timeline.left_out(), kMaxLanes));
}

void run_trace(const TraceOptions& options) {
  std::string path = options.output.empty() ? beside_profile(options.profile, ".trace.json.gz") : options.output;
  write_timeline(options, path);
  if (path != "-") print_message(fmt::format("wrote {}: open it in https://ui.perfetto.dev or chrome://tracing", path));
}

}  // namespace

void add_trace_command(CommandLine command) {
  auto options = std::make_shared<TraceOptions>();
  command.profile(options->profile);
  command.text("-o,--output", options->output,
               "File to write, .json or .json.gz; - for standard output (default: PROFILE.trace.json.gz)");
  command.phase(options->phase);
  command.rank(options->rank);
  command.text("--names", options->names, "short: kernels without what tells nothing (default); full: as they are",
               {"short", "full"});
  command.force(options->force);
  command.run([options] { run_trace(*options); });
}

}  // namespace lamina
