// Reads a whole profile, process by process, into one layer tree.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "report/attribution/attribution.h"
#include "report/records/account.h"
#include "report/records/profile_file.h"
#include "report/tree/layer_tree.h"

namespace lamina {

// One process of the profile: what its file says besides the layers.
struct Process {
  std::string path;
  ProcessDefinitions definitions;
  Account account;
  std::vector<Damage> damage;
  bool ended = false;  // with a trailer: nothing is missing at the end
  uint64_t file_size = 0;
  std::optional<uint32_t> rank;  // from the launcher's variables

  // A property of the recorder's, empty when it is not there.
  std::string property(const std::string& key) const;
};

// Sees every record of every process before it is attributed (definitions just after), and every activity when its place
// is known. `trace` is a LayerTree::name_id. Any of these may be missing.
struct ProfileObserver {
  std::function<void(const RecordView&, const ProcessDefinitions&, const Chunk&)> record;
  std::function<void(const Activity&, Position, Placement, uint32_t step, uint32_t trace, const ProcessDefinitions&)> activity;
  std::function<void(const ProfileFile&)> begin;  // of a process
  std::function<void(const Process&)> end;
};

// `rank`: only that process. Throws InputError when there is no profile, or no such rank.
std::vector<Process> read_profile(const std::string& path, LayerTree& tree, std::optional<uint32_t> rank = std::nullopt,
                                  const ProfileObserver& observer = {}, StackView stacks = StackView::kUsual);

// Tells on stderr, in a line a file, what is damaged or missing but leaves the rest of use. Throws InputError when nothing
// is left.
void tell_problems(const std::vector<Process>& processes);

}  // namespace lamina
