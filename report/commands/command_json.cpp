// `lamina json`: a profile as layerwise JSON.
#include <memory>
#include <nlohmann/json.hpp>

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
      print_message(
          fmt::format("{} prefill steps: `prefill` is their sum, each stands under context.lamina.prefill_steps",
                      phase.step_count));
    }
  }
  std::string text = write_layerwise_json(report).dump(1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
  if (options.output == "-") return write_stdout(text);
  std::string path = options.output.empty() ? beside_profile(options.profile, ".json") : options.output;
  write_file(path, text, options.force);
  print_message("wrote " + path);
}

}  // namespace

void add_json_command(CommandLine command) {
  auto options = std::make_shared<JsonOptions>();
  command.report(options->profile);
  command.text("-o,--output", options->output, "File to write, - for standard output (default: PROFILE.json)");
  command.rank(options->rank);
  command.force(options->force);
  command.run([options] { run_json(*options); });
}

}  // namespace lamina
