#include "report/load/report_context.h"

#include <nlohmann/json.hpp>

#include "report/errors.h"
#include "report/format.h"
#include "report/load/json_text.h"

namespace lamina {

using nlohmann::ordered_json;

namespace {

uint64_t number(const std::string& text) { return strtoull(text.c_str(), nullptr, 10); }

// As PyTorch prints its device properties, which is what readers of this key expect.
std::string device_text(const Process& process, size_t index) {
  std::string prefix = fmt::format("device.{}.", index);
  auto value = [&](const char* key) { return process.property(prefix + key); };
  return fmt::format("_CudaDeviceProperties(name='{}', major={}, minor={}, total_memory={}MB, multi_processor_count={}, L2_cache_size={}MB)",
                     value("name"), value("compute_capability_major"), value("compute_capability_minor"),
                     number(value("memory_bytes")) >> 20, value("multiprocessors"), number(value("l2_bytes")) >> 20);
}

std::string devices_text(const Process& process) {
  std::string devices;
  for (size_t i = 0; !process.property(fmt::format("device.{}.name", i)).empty(); ++i) {
    devices += (i == 0 ? "" : ", ") + device_text(process, i);
  }
  return "[" + devices + "]";
}

// Values that the user gave; a `model` is put where readers look for it.
void add_values(ordered_json& context, const ordered_json& values) {
  if (!values.is_object()) return;
  for (const auto& [key, value] : values.items()) {
    if (key == "model" || key == "tensor_parallel_size") {
      context["engine_args"][key] = value;
    } else if (key != "lamina") {
      context[key] = value;
    }
  }
}

// Text from the profile; what is no JSON object has no values. Depth is bounded, so that the result may be walked.
void add_json(ordered_json& context, const std::string& text) {
  try {
    if (!text.empty()) add_values(context, parse_json(text, "context"));
  } catch (const InputError&) {
  }
}

ordered_json process_json(const Process& process) {
  ordered_json json;
  for (const auto& [key, value] : process.definitions.properties()) {
    if (key != "context" && !key.starts_with("device.")) json[key] = value;
  }
  if (process.rank) json["rank"] = *process.rank;
  json["end_missing"] = !process.ended;
  const Account& account = process.account;
  json["kernels"] = account.activities[static_cast<size_t>(ActivityKind::kKernel)];
  json["launches_without_kernel"] = account.without_activity;
  return json;
}

}  // namespace

ordered_json report_context(const std::vector<Process>& processes) {
  ordered_json context = {{"python_version", nullptr}, {"torch_version", nullptr}, {"torch_cuda_version", nullptr}};
  context["cuda_devices"] = processes.empty() ? "[]" : devices_text(processes.front());
  context["engine_args"] = {{"model", nullptr}};
  context["prompt_len"] = nullptr;
  context["batch_size"] = nullptr;
  context["num_steps"] = nullptr;
  context["complete_num_requests_per_step"] = nullptr;
  context["save_chrome_traces_folder"] = nullptr;
  ordered_json lamina_processes = ordered_json::array();
  for (const Process& process : processes) {
    add_json(context, process.property("context"));
    for (const std::string& mark : process.account.context_marks) add_json(context, mark);
    lamina_processes.push_back(process_json(process));
  }
  context["lamina"]["processes"] = std::move(lamina_processes);
  return context;
}

}  // namespace lamina
