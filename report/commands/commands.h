// The commands. Each function gives its options to the subcommand made for it and sets its callback; main.cpp has a row
// for each. A callback reports failure by throwing (errors.h), and an exit status of its own as ExitStatus.
#pragma once

#include "report/commands/command_line.h"

namespace lamina {

void add_run_command(CommandLine command);
void add_env_command(CommandLine command);
void add_table_command(CommandLine command);
void add_json_command(CommandLine command);
void add_plot_command(CommandLine command);
void add_csv_command(CommandLine command);
void add_trace_command(CommandLine command);
void add_diff_command(CommandLine command);
void add_html_command(CommandLine command);
void add_info_command(CommandLine command);
void add_dump_command(CommandLine command);

}  // namespace lamina
