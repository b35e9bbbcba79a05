// What a command takes on its command line. CLI11 does the work, behind this header: included by each command it would
// be most of the time to compile them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace lamina {

// What a command throws to end with a status of its own, when it has said why.
struct ExitStatus {
  int status;
};

// The references are written to when the command line is read, so they have to live until then. `name` is as CLI11 has
// it:
// `--phase`, `-o,--output`, or `PROFILE` for an argument without a name, which has to be given.
class CommandLine {
 public:
  explicit CommandLine(CLI::App& app) : app_(app) {}

  void argument(const std::string& name, std::string& value, const std::string& description);

  // With choices, nothing else is taken.
  using Choices = std::vector<std::string>;
  void text(const std::string& name, std::string& value, const std::string& description, const Choices& choices = {});
  // May be given without a value, and is then `bare`.
  void text_or(const std::string& bare, const std::string& name, std::string& value, const std::string& description,
               const Choices& choices);
  // One value each time it is given.
  void texts(const std::string& name, std::vector<std::string>& values, const std::string& description);
  void numbers(const std::string& name, std::vector<uint32_t>& values, const std::string& description);

  void count(const std::string& name, size_t& value, const std::string& description);  // at least 1
  void count(const std::string& name, std::optional<uint32_t>& value, const std::string& description);
  void flag(const std::string& name, bool& value, const std::string& description);

  // What several commands take, in the same words.
  void report(std::string& profile);   // PROFILE, or a layerwise JSON
  void profile(std::string& profile);  // PROFILE
  void phase(std::string& phase);
  void rank(std::optional<uint32_t>& rank);
  void groups(std::string& file);
  void force(bool& force);

  void run(std::function<void()> command);

  // For what only one command needs.
  CLI::App& app() { return app_; }

 private:
  CLI::App& app_;
};

}  // namespace lamina
