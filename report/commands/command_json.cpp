// `lamina json`: a profile as layerwise JSON.
#include <memory>

#include "report/commands/choice.h"
#include "report/commands/commands.h"
#include "report/errors.h"
#include "report/format.h"
#include "report/load/layerwise_json.h"
#include "report/load/load_report.h"
#include "report/output.h"

namespace lamina {
namespace {

struct JsonOptions {
  std::string profile;
  std::string output;
  std::optional<uint32_t> rank;
  bool force = false;
};

void run_json(const JsonOptions& options) {
  LoadOptions load;
  load.steps = StepDetail::kModels;
  load.rank = options.rank;
  LayerReport report = load_report(options.profile, load);
  for (const PhaseReport& phase : report.phases) {
    if (phase.name == "prefill" && phase.step_count > 1) {
      print_message(fmt::format("{} prefill steps: `prefill` is their sum, each stands under context.lamina.prefill_steps", phase.step_count));
    }
  }
  std::string text = write_layerwise_json(report).dump(1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
  if (options.output == "-") return write_stdout(text);
  std::string path = options.output.empty() ? beside_profile(options.profile, ".json") : options.output;
  write_file(path, text, options.force);
  print_message("wrote " + path);
}

}  // namespace

void add_json_command(CLI::App& command) {
  auto options = std::make_shared<JsonOptions>();
  command.add_option("PROFILE", options->profile, "Profile folder, one file of it, or a layerwise JSON")->required();
  command.add_option("-o,--output", options->output, "File to write, - for standard output (default: PROFILE.json)");
  command.add_option("--rank", options->rank, "Only the process of this rank");
  command.add_flag("--force", options->force, "Replace the file if it is there");
  command.callback([options] { run_json(*options); });
}

}  // namespace lamina
