// Reads profiles that tests have built, and shows what the report makes of them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "profile_builder.h"
#include "report/load/profile.h"
#include "report/tree/layer_report.h"

namespace lamina {

// A file that is gone with the object.
class TemporaryFile {
 public:
  explicit TemporaryFile(std::string_view bytes);
  ~TemporaryFile();
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

struct ReadBack {
  LayerReport report;
  std::vector<Process> processes;
  const Account& account() const { return processes.at(0).account; }
  uint64_t placed(Placement placement) const { return account().by_placement[static_cast<size_t>(placement)]; }
};

// Reads a profile with the details of every step.
ReadBack read_bytes(std::string_view bytes, bool merge_instances = true);

// The same, and expects that nothing is damaged and that every activity is in exactly one row, with its time.
ReadBack read_back(ProfileBuilder& profile);
void expect_totals_add_up(const ReadBack& result);

// One row a line, children indented: `NAME TIME_US`, with ` [trace]` behind a kernel that has one.
std::string model_text(const ReadBack& result, std::string_view phase, uint32_t step = 1);
// `NAME TIME_US xINVOCATIONS`.
std::string summary_text(const ReadBack& result, std::string_view phase);
std::vector<std::string> phase_names(const ReadBack& result);

}  // namespace lamina
