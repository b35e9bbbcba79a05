#include "report/run/launch.h"

#include <filesystem>
#include <nlohmann/json.hpp>

#include "inject/record.h"
#include "report/errors.h"
#include "report/format.h"
#include "report/load/json_text.h"

namespace lamina {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

namespace {

constexpr const char* kRecorderFile = "liblamina_inject.so";

// A value that is JSON is kept as what it is; anything else is a string.
ordered_json context_value(const std::string& text) {
  try {
    return parse_json(text, "");
  } catch (const InputError&) {
    return text;
  }
}

// Splits KEY=VALUE. `option` is for the message.
std::pair<std::string, std::string> split_pair(const std::string& text, const char* option, const char* form) {
  size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0) {
    throw UsageError(fmt::format("{}: '{}' is not {}", option, text, form));
  }
  return {text.substr(0, equals), text.substr(equals + 1)};
}

std::string one_line_json(const ordered_json& json) {
  return json.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}

std::string context_text(const std::vector<std::string>& context) {
  ordered_json object = ordered_json::object();
  for (const std::string& item : context) {
    auto [key, value] = split_pair(item, "--context", "KEY=VALUE");
    object[key] = context_value(value);
  }
  return one_line_json(object);
}

std::string patterns_text(const std::vector<std::string>& patterns) {
  std::string text;
  for (const std::string& pattern : patterns) {
    auto [name, glob] = split_pair(pattern, "--phase-pattern", "NAME=GLOB");
    if (glob.empty()) throw UsageError(fmt::format("--phase-pattern: '{}' is not NAME=GLOB", pattern));
    if (pattern.find(';') != std::string::npos) {
      throw UsageError(fmt::format("--phase-pattern: '{}' holds a ';': write '?' for it", pattern));
    }
    text += (text.empty() ? "" : ";") + pattern;
  }
  return text;
}

// The dynamic loader takes a space or a colon in a path for its end.
std::string preload_text(const RunOptions& options) {
  if (options.recorder.find_first_of(" :") != std::string::npos) {
    throw UsageError(fmt::format("--preload: there is a space or a colon in {}: install Lamina elsewhere", options.recorder));
  }
  return options.recorder + (options.preloaded.empty() ? "" : ":" + options.preloaded);
}

// ---- formats

std::string shell_text(const Variables& variables) {
  std::string text;
  for (const auto& [name, value] : variables) text += fmt::format("export {}={}\n", name, shell_quoted(value));
  return text;
}

std::string docker_text(const Variables& variables) {
  std::string text;
  for (const auto& [name, value] : variables) text += fmt::format("-e {}\n", shell_word(name + "=" + value));
  return text;
}

std::string kubernetes_text(const Variables& variables) {
  std::string text;
  for (const auto& [name, value] : variables) {
    text += fmt::format("- name: {}\n  value: {}\n", name, one_line_json(value));  // a JSON string is a YAML one
  }
  return text;
}

ordered_json variables_json(const Variables& variables) {
  ordered_json object = ordered_json::object();
  for (const auto& [name, value] : variables) object[name] = value;
  return object;
}

std::string json_format(const Variables& variables) { return one_line_json(variables_json(variables)) + "\n"; }

// As `--runtime-env-json` of `ray job submit` takes it.
std::string ray_text(const Variables& variables) {
  return one_line_json({{"env_vars", variables_json(variables)}}) + "\n";
}

// What Python imports first, to hook PyTorch before modules run (nvtx_hooks/README.md); empty where it was not built.
std::string python_startup(const std::string& recorder) {
  fs::path folder = fs::path(recorder).parent_path() / "lamina/python/startup";
  std::error_code error;
  return fs::is_regular_file(folder / "sitecustomize.py", error) ? folder.string() : "";
}

}  // namespace

const std::vector<VariablesFormat> kVariablesFormats = {{"shell", shell_text},
                                                        {"docker", docker_text},
                                                        {"kubernetes", kubernetes_text},
                                                        {"ray", ray_text},
                                                        {"json", json_format}};

Variables recorder_variables(const RunOptions& options) {
  Variables variables = {{"CUDA_INJECTION64_PATH", options.recorder}, {"NVTX_INJECTION64_PATH", options.recorder}};
  auto add_if = [&](bool given, const char* name, std::string value) {
    if (given) variables.emplace_back(name, std::move(value));
  };
  add_if(!options.out.empty(), "LAMINA_OUT", options.out);
  add_if(!options.context.empty(), "LAMINA_CONTEXT", context_text(options.context));
  add_if(!options.phase_patterns.empty(), "LAMINA_PHASE_PATTERN", patterns_text(options.phase_patterns));
  add_if(!options.collect.empty(), "LAMINA_COLLECT", options.collect);
  add_if(options.every > 1, "LAMINA_EVERY", std::to_string(options.every));
  add_if(!options.torch.empty(), "LAMINA_TORCH", options.torch);
  add_if(!options.stacks.empty(), "LAMINA_STACKS", options.stacks);
  add_if(!options.extensions.empty(), "LAMINA_EXT", options.extensions);
  std::string startup = options.torch != "off" ? python_startup(options.recorder) : "";
  add_if(!startup.empty(), "PYTHONPATH", startup + (options.python_path.empty() ? "" : ":" + options.python_path));
  add_if(options.preload, "LD_PRELOAD", preload_text(options));
  return variables;
}

std::string find_recorder(const std::string& command_folder) {
  std::string searched;
  for (const char* place : {"", "../lib", "../lib/lamina"}) {
    fs::path folder = (fs::path(command_folder) / place).lexically_normal();
    std::error_code error;
    if (fs::path file = folder / kRecorderFile; fs::is_regular_file(file, error)) return file.string();
    searched += (searched.empty() ? "" : ", ") + folder.string();
  }
  throw std::runtime_error(
      fmt::format("{} was not found in {}: install it beside the command", kRecorderFile, searched));
}

std::string new_folder_name(const std::string& program, time_t time, int pid) {
  char date[32];
  tm local{};
  localtime_r(&time, &local);
  strftime(date, sizeof(date), "%Y%m%d-%H%M%S", &local);
  return fmt::format("lamina-{}-{}-{}", fs::path(program).filename().string(), date, pid);
}

std::string shell_quoted(std::string_view text) {
  std::string quoted = "'";
  for (char c : text) {
    if (c == '\'') {
      quoted += "'\\''";  // ends the quotes, adds one, begins again
    } else {
      quoted += c;
    }
  }
  return quoted + "'";
}

std::string shell_word(std::string_view text) {
  constexpr std::string_view kSafe = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789@%+=:,./-_";
  bool safe = !text.empty() && text.find_first_not_of(kSafe) == std::string_view::npos;
  return safe ? std::string(text) : shell_quoted(text);
}

FolderContents profile_contents(const std::string& folder) {
  FolderContents contents;
  std::error_code error;
  for (fs::directory_iterator file(folder, error), end; !error && file != end; file.increment(error)) {
    if (file->path().extension() != format::kFileSuffix) continue;
    std::error_code size_error;
    uintmax_t size = file->file_size(size_error);
    ++contents.files;
    if (!size_error) contents.bytes += size;
  }
  return contents;
}

std::string size_text(uint64_t bytes) {
  if (bytes < 1000) return fmt::format("{} B", bytes);
  double size = static_cast<double>(bytes);
  const char* unit = "";
  for (const char* next : {"kB", "MB", "GB", "TB"}) {
    if (size < 999.95 && *unit) break;
    size /= 1000;
    unit = next;
  }
  return fmt::format("{:.1f} {}", size, unit);
}

}  // namespace lamina
