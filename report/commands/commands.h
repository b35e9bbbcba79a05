// The commands. Each function gives its options to the subcommand made for it and sets its callback; main.cpp has a row
// for each. A callback reports failure by throwing (errors.h), and an exit status of its own as CLI::RuntimeError.
#pragma once

#include <CLI/CLI.hpp>

namespace lamina {

void add_run_command(CLI::App& command);
void add_env_command(CLI::App& command);
void add_table_command(CLI::App& command);
void add_json_command(CLI::App& command);
void add_csv_command(CLI::App& command);
void add_info_command(CLI::App& command);
void add_dump_command(CLI::App& command);

}  // namespace lamina
