#include "report/load/profile.h"

#include <algorithm>
#include <charconv>

#include "report/errors.h"
#include "report/format.h"
#include "report/load/progress.h"
#include "report/output.h"
#include "report/records/read_ahead.h"

namespace lamina {

using namespace format;

namespace {

// The variables of launchers that number the processes of a run, the most telling first.
constexpr const char* kRankVariables[] = {"RANK", "OMPI_COMM_WORLD_RANK", "SLURM_PROCID", "LOCAL_RANK"};

std::optional<uint32_t> rank_of(const std::map<std::string, std::string>& properties) {
  for (const char* variable : kRankVariables) {
    auto found = properties.find(std::string("rank.") + variable);
    uint32_t rank = 0;
    if (found == properties.end()) continue;
    const std::string& text = found->second;
    if (std::from_chars(text.data(), text.data() + text.size(), rank).ec == std::errc()) return rank;
  }
  return std::nullopt;
}

// The properties stand in the first definitions of the file.
std::optional<uint32_t> rank_of_file(const std::string& path) {
  ProfileFile file(path);
  ProcessDefinitions definitions;
  Chunk chunk;
  if (file.next(chunk, ChunkKind::kDefinitions)) chunk.for_each([&](const RecordView& record) { definitions.add(record); });
  return rank_of(definitions.properties());
}

std::vector<std::string> files_of_rank(const std::vector<std::string>& files, uint32_t rank) {
  std::vector<std::string> chosen;
  std::string known;
  for (const std::string& path : files) {
    auto of_file = rank_of_file(path);
    if (of_file == rank) chosen.push_back(path);
    if (of_file) known += fmt::format("{}{}", known.empty() ? "" : ", ", *of_file);
  }
  if (chosen.empty()) {
    throw InputError(fmt::format("no rank {}: {}", rank, known.empty() ? "no process of the profile has a rank (RANK was not set)"
                                                                       : "the profile has " + known));
  }
  return chosen;
}

Process read_process(const std::string& path, LayerTree& tree, const ProfileObserver& observer, StackView stacks) {
  Process process;
  process.path = path;
  ProfileFile file(path);
  Attribution::Observer on_activity;
  Attribution* self = nullptr;
  if (observer.activity) {
    on_activity = [&](const Activity& activity, Position position, Placement placement, uint32_t step, uint32_t trace) {
      observer.activity(activity, position, placement, step, trace, self->definitions());
    };
  }
  Attribution attribution(tree, process.account, phase_source(path), on_activity, stacks);
  self = &attribution;
  if (observer.begin) observer.begin(file);
  {
    Progress progress(path);
    ReadAhead chunks(file);
    while (const Chunk* chunk = chunks.next()) {
      bool defines = chunk->header.kind == ChunkKind::kDefinitions;
      if (defines) attribution.add(*chunk);
      if (observer.record) chunk->for_each([&](const RecordView& record) { observer.record(record, attribution.definitions(), *chunk); });
      if (!defines) attribution.add(*chunk);
      progress.at(chunk->offset, file.size());
    }
  }
  attribution.finish();
  process.definitions = attribution.definitions();
  process.damage = file.damage();
  process.ended = file.has_trailer();
  process.file_size = file.size();
  process.rank = rank_of(process.definitions.properties());
  if (observer.end) observer.end(process);
  return process;
}

bool nothing_left(const Process& process) {
  const auto& counts = process.account.activities;
  return !process.damage.empty() && std::all_of(counts.begin(), counts.end(), [](uint64_t count) { return count == 0; });
}

}  // namespace

std::string Process::property(const std::string& key) const {
  auto found = definitions.properties().find(key);
  return found != definitions.properties().end() ? found->second : "";
}

std::vector<Process> read_profile(const std::string& path, LayerTree& tree, std::optional<uint32_t> rank,
                                  const ProfileObserver& observer, StackView stacks) {
  std::vector<std::string> files = profile_files(path);
  if (rank) files = files_of_rank(files, *rank);
  std::vector<Process> processes;
  for (const std::string& file : files) {
    try {
      processes.push_back(read_process(file, tree, observer, stacks));
    } catch (const InputError& error) {
      // A process that was killed at its start must not take the others with it.
      if (files.size() == 1) throw;
      Process unread;
      unread.path = file;
      unread.damage.push_back({0, error.what()});
      processes.push_back(std::move(unread));
    }
  }
  return processes;
}

void tell_problems(const std::vector<Process>& processes) {
  if (std::all_of(processes.begin(), processes.end(), nothing_left)) {
    const Damage& first = processes.front().damage.front();
    throw InputError(fmt::format("{}: {} at offset {}: no kernel is left", processes.front().path, first.what, first.offset));
  }
  for (const Process& process : processes) {
    if (!process.damage.empty()) {
      const Damage& first = process.damage.front();
      print_message(fmt::format("{}: {} at offset {}: what stands there is missing from the report", process.path, first.what, first.offset));
    } else if (!process.ended) {
      print_message(fmt::format("{}: the end is missing (the program was killed or is still running): see `lamina info`", process.path));
    }
  }
}

}  // namespace lamina
