// `lamina info`: what a profile holds and what it lacks.
#include <memory>

#include "report/commands/commands.h"
#include "report/format.h"
#include "report/output.h"
#include "report/render/info.h"

namespace lamina {

void add_info_command(CommandLine command) {
  auto profile = std::make_shared<std::string>();
  command.profile(*profile);
  command.run([profile] {
    LayerTree::Options options;
    options.first_model = false;
    options.gpu_time = true;
    LayerTree tree(std::move(options));
    std::vector<Process> processes = read_profile(*profile, tree);
    LayerReport report;
    tree.finish(report);
    write_stdout(info_text(*profile, processes, report));
  });
}

}  // namespace lamina
