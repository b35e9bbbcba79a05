#include "report/render/info.h"

#include <nlohmann/json.hpp>
#include <numeric>

#include "report/format.h"
#include "report/render/gpu_time_text.h"

namespace lamina {

using namespace format;

namespace {

// Collects the lines of one section.
class Lines {
 public:
  void add(std::string_view label, const std::string& value) { lines_.push_back({std::string(label), value}); }
  void add_if(std::string_view label, const std::string& value) {
    if (!value.empty()) add(label, value);
  }
  // Counts of what should be none stand out by standing there at all.
  void add_if(std::string_view label, uint64_t count, std::string_view what) {
    if (count > 0) add(label, fmt::format("{} ({})", count, what));
  }
  void add_problem(std::string_view label, const std::string& value) { lines_.push_back({std::string(label), value, true}); }
  void add_problem_if(std::string_view label, uint64_t count, std::string_view what) {
    if (count > 0) add_problem(label, fmt::format("{} ({})", count, what));
  }
  std::vector<InfoLine> take() { return std::move(lines_); }

 private:
  std::vector<InfoLine> lines_;
};

constexpr std::pair<LossKind, const char*> kLosses[] = {
    {LossKind::kThreadRecords, "records of host threads: the buffers were full (LAMINA_BUFFER_MB)"},
    {LossKind::kSignalHandlers, "NVTX events of signal handlers: their thread was in the recorder just then"},
    {LossKind::kActivityRecords, "kernel records: the disk was too slow (LAMINA_BUFFER_MB)"},
    {LossKind::kCuptiDropped, "kernel records dropped by CUPTI"},
    {LossKind::kWriteFailed, "chunks that could not be written"},
    {LossKind::kContexts, "ranges past the limit of distinct contexts: their layers are (other)"},
    {LossKind::kStacks, "launches without their call stack: past the limit of distinct stacks"},
    {LossKind::kStrings, "names past the limit of distinct texts: they are (other)"},
};

std::string device_text(const Process& process, int number) {
  std::string prefix = fmt::format("device.{}.", number);
  std::string name = process.property(prefix + "name");
  if (name.empty()) return "";
  double gib = static_cast<double>(strtoull(process.property(prefix + "memory_bytes").c_str(), nullptr, 10)) / (1u << 30);
  return fmt::format("{}, {:.0f} GiB, {} multiprocessors, compute capability {}.{}", name, gib,
                     process.property(prefix + "multiprocessors"), process.property(prefix + "compute_capability_major"),
                     process.property(prefix + "compute_capability_minor"));
}

void add_machine(Lines& lines, const Process& process) {
  lines.add("command", process.property("process.command"));
  lines.add("process", fmt::format("{} on {}, {}", process.property("process.pid"), process.property("machine.host"),
                                   process.property("machine.system")));
  if (process.rank) lines.add("rank", std::to_string(*process.rank));
  for (int i = 0; !device_text(process, i).empty(); ++i) lines.add(fmt::format("device {}", i), device_text(process, i));
  lines.add_if("driver", process.property("driver.cuda_version").empty() ? "" : "for CUDA " + process.property("driver.cuda_version"));
  lines.add("CUPTI", process.property("cupti.version") + ", " + process.property("cupti.path"));
  lines.add_if("collected", process.property("option.LAMINA_COLLECT"));
  lines.add_if("every", process.property("option.LAMINA_EVERY"));
  lines.add_if("phase patterns", process.property("option.LAMINA_PHASE_PATTERN"));
}

uint64_t sum(const std::array<uint64_t, 3>& counts) { return std::accumulate(counts.begin(), counts.end(), uint64_t{0}); }

void add_launches(Lines& lines, const Account& account) {
  auto launches = [&](LaunchKind kind) { return account.launches[static_cast<size_t>(kind)]; };
  lines.add("launches", fmt::format("{} kernels, {} memcpy, {} memset, {} graphs", launches(LaunchKind::kKernel),
                                    launches(LaunchKind::kMemcpy), launches(LaunchKind::kMemset), launches(LaunchKind::kGraph)));
  lines.add_if("  captured", account.captured, "into graphs, nothing ran");
  lines.add_if("  failed", account.failed, "the call returned an error");
  lines.add_if("  not collected", account.not_collected, "outside of what --collect or --every chose");
  lines.add_problem_if("  without a kernel record", account.without_activity, "MISSING: the program ended first, or records were lost");
}

// Whether launch records may be missing, so that a kernel without one need not be the driver's own.
bool launches_may_be_lost(const Process& process) {
  const auto& losses = process.definitions.losses();
  return !process.ended || !process.damage.empty() || process.account.lost_pieces > 0 || losses.contains(LossKind::kThreadRecords);
}

// How much of what ranges enclose is in its layer. What no range encloses can have none, and the driver's own kernels
// neither.
std::string layer_text(const Process& process) {
  auto placed = [&](Placement placement) { return process.account.by_placement[static_cast<size_t>(placement)]; };
  uint64_t enclosed = sum(process.account.activities) - placed(Placement::kNoRange);
  if (!launches_may_be_lost(process)) enclosed -= placed(Placement::kDriver);
  if (enclosed == 0) return "0";
  double percent = 100.0 * static_cast<double>(placed(Placement::kLayer)) / static_cast<double>(enclosed);
  return fmt::format("{} ({:.2f}% of what ranges enclose)", placed(Placement::kLayer), percent);
}

void add_activity(Lines& lines, const Process& process) {
  const Account& account = process.account;
  auto activities = [&](ActivityKind kind) { return account.activities[static_cast<size_t>(kind)]; };
  auto placed = [&](Placement placement) { return account.by_placement[static_cast<size_t>(placement)]; };
  lines.add("GPU activity", fmt::format("{} kernels, {} memcpy, {} memset, {:.3f} ms in all", activities(ActivityKind::kKernel),
                                        activities(ActivityKind::kMemcpy), activities(ActivityKind::kMemset), account.total_us / 1000));
  lines.add("  in a layer", layer_text(process));
  lines.add_if("  outside of every range", placed(Placement::kNoRange), "launched, or their graph node created, where no range was open");
  lines.add_if("  launch not seen", placed(Placement::kDriver),
               launches_may_be_lost(process) ? "its record was lost, or the driver launched it: in `(driver)`"
                                             : "launched by the driver itself: in `(driver)`");
  lines.add_problem_if("  unknown graph node", placed(Placement::kUnknownNode), "its creation was not seen: in `(unknown node)`");
  lines.add_problem_if("  stale graph node", placed(Placement::kStaleNode), "its graph was updated in a way not followed: in `(stale node)`");
  lines.add_problem_if("  ambiguous graph node", placed(Placement::kAmbiguousNode), "another kernel ran than was captured: in `(ambiguous node)`");
  lines.add_problem_if("  without time", account.without_time, "CUPTI gave none: they count 0");
  lines.add_if("  far out of order", account.out_of_order, "not counted in the GPU's busy and idle time");
  lines.add_if("  left out", account.not_shown, "of steps that were not to be collected");
}

// Steps that miss kernels, most of which one sees in --every with a busy GPU or at a kill.
void add_partial_steps(Lines& lines, const Process& process) {
  uint64_t partial = 0;
  for (const auto& [step, missing] : process.account.missing_in_step) {
    if (process.definitions.step(step)) ++partial;
  }
  lines.add_problem_if("steps recorded in part", partial, "kernels are missing in them");
}

void add_problems(Lines& lines, const Process& process) {
  for (const auto& [kind, count] : process.definitions.losses()) {
    for (const auto& [known, text] : kLosses) {
      if (known == kind) lines.add_problem_if("LOST", count, text);
    }
  }
  for (const Damage& damage : process.damage) lines.add_problem("DAMAGED", fmt::format("{} at offset {}", damage.what, damage.offset));
  lines.add_problem_if("damaged records", process.account.damaged_records, "passed over");
  lines.add_problem_if("missing pieces", process.account.lost_pieces, "of host threads' streams");
  if (!process.ended) lines.add_problem("END MISSING", "killed, or still running: the last second and open buffers are not there");
  std::string unwound = process.property("stacks.unwound");
  if (!unwound.empty()) {
    lines.add("call stacks unwound", fmt::format("{}, half of them in less than {} us, 99 of a hundred in less than {}", unwound,
                                                 process.property("stacks.median_us"), process.property("stacks.slow_us")));
  }
  std::string unbalanced = process.property("nvtx.unbalanced_pops");
  if (!unbalanced.empty() && unbalanced != "0") lines.add("NVTX", unbalanced + " pops without a push");
  std::string copies = process.property("nvtx.copies");
  if (!copies.empty()) lines.add("NVTX copies attached", copies == "0" ? "0: no range of the program was seen" : copies);
}

void add_phases(Lines& lines, const LayerReport& report) {
  for (const PhaseReport& phase : report.phases) {
    double us = 0;
    for (const SummaryNode& root : phase.summary) us += root.cuda_time_us;
    lines.add(phase.name, fmt::format("{} step{}, {:.3f} ms of GPU time", phase.step_count, phase.step_count == 1 ? "" : "s", us / 1000));
    if (!phase.gpu) continue;
    for (const auto& [label, text] : gpu_time_lines(*phase.gpu)) lines.add("  " + label, text);
  }
}

// What report_context.cpp wrote of a process, if this is what stands there.
InfoSection process_section(const nlohmann::ordered_json& process) {
  auto text = [&](const char* key) { return process.contains(key) && process[key].is_string() ? process[key].get<std::string>() : ""; };
  auto count = [&](const char* key) { return process.contains(key) && process[key].is_number_unsigned() ? process[key].get<uint64_t>() : 0; };
  Lines lines;
  lines.add_if("command", text("process.command"));
  lines.add_if("rank", process.contains("rank") ? std::to_string(count("rank")) : "");
  lines.add("GPU activity", fmt::format("{} kernels", count("kernels")));
  lines.add_problem_if("launches without a kernel record", count("launches_without_kernel"), "MISSING: the program ended first, or records were lost");
  if (process.contains("end_missing") && process["end_missing"] == true) lines.add_problem("END MISSING", "killed, or still running when the JSON was written");
  return {fmt::format("process {} on {}", text("process.pid"), text("machine.host")), lines.take()};
}

}  // namespace

std::vector<InfoSection> info_sections(const std::vector<Process>& processes, const LayerReport& report) {
  std::vector<InfoSection> sections;
  for (const Process& process : processes) {
    Lines lines;
    add_machine(lines, process);
    add_launches(lines, process.account);
    add_activity(lines, process);
    add_partial_steps(lines, process);
    add_problems(lines, process);
    sections.push_back({fmt::format("{} ({} bytes)", process.path, process.file_size), lines.take()});
  }
  Lines phases;
  add_phases(phases, report);
  sections.push_back({"phases", phases.take()});
  return sections;
}

std::vector<InfoSection> info_sections(const LayerReport& report) {
  std::vector<InfoSection> sections;
  auto lamina = report.context->find("lamina");
  bool known = lamina != report.context->end() && lamina->is_object() && lamina->contains("processes") && (*lamina)["processes"].is_array();
  for (const nlohmann::ordered_json& process : known ? (*lamina)["processes"] : nlohmann::ordered_json::array()) {
    if (process.is_object()) sections.push_back(process_section(process));
  }
  Lines phases;
  add_phases(phases, report);
  sections.push_back({"phases", phases.take()});
  return sections;
}

std::string info_text(const std::string& profile, const std::vector<Process>& processes, const LayerReport& report) {
  std::string text = fmt::format("{}: {} process{}\n", profile, processes.size(), processes.size() == 1 ? "" : "es");
  for (const InfoSection& section : info_sections(processes, report)) {
    text += "\n" + section.title + "\n";
    for (const InfoLine& line : section.lines) text += fmt::format("  {:<30} {}\n", line.label, line.value);
  }
  return text;
}

}  // namespace lamina
