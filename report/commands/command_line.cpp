#include "report/commands/command_line.h"

#include <CLI/CLI.hpp>

namespace lamina {

namespace {

constexpr uint32_t kLargestCount = 1'000'000;

void limit_to(CLI::Option* option, const CommandLine::Choices& choices) {
  if (!choices.empty()) option->check(CLI::IsMember(choices));
}

}  // namespace

void CommandLine::argument(const std::string& name, std::string& value, const std::string& description) {
  app_.add_option(name, value, description)->required();
}

void CommandLine::text(const std::string& name, std::string& value, const std::string& description,
                       const Choices& choices) {
  limit_to(app_.add_option(name, value, description), choices);
}

void CommandLine::text_or(const std::string& bare, const std::string& name, std::string& value,
                          const std::string& description, const Choices& choices) {
  limit_to(app_.add_option(name, value, description)->expected(0, 1)->default_str(bare), choices);
}

void CommandLine::texts(const std::string& name, std::vector<std::string>& values, const std::string& description) {
  app_.add_option(name, values, description)->allow_extra_args(false);
}

void CommandLine::numbers(const std::string& name, std::vector<uint32_t>& values, const std::string& description) {
  app_.add_option(name, values, description)->allow_extra_args(false);
}

void CommandLine::count(const std::string& name, size_t& value, const std::string& description) {
  app_.add_option(name, value, description)->check(CLI::Range(1u, kLargestCount));
}

void CommandLine::count(const std::string& name, std::optional<uint32_t>& value, const std::string& description) {
  app_.add_option(name, value, description)->check(CLI::Range(1u, kLargestCount));
}

void CommandLine::flag(const std::string& name, bool& value, const std::string& description) {
  app_.add_flag(name, value, description);
}

void CommandLine::report(std::string& profile) {
  argument("PROFILE", profile, "A profile folder, one file of it, or a layerwise JSON");
}

void CommandLine::profile(std::string& profile) { argument("PROFILE", profile, "A profile folder, or one file of it"); }

void CommandLine::phase(std::string& phase) {
  text("--phase", phase, "A phase such as decode, or one step of it such as decode_7; default: all");
}

void CommandLine::rank(std::optional<uint32_t>& rank) {
  app_.add_option("--rank", rank, "Only the process of this rank");
}

void CommandLine::groups(std::string& file) {
  text("--groups", file, "A JSON file of groups of kernels, before the built-in ones; for the kernel table");
}

void CommandLine::force(bool& force) { flag("--force", force, "Replace what is there"); }

void CommandLine::run(std::function<void()> command) { app_.callback(std::move(command)); }

}  // namespace lamina
