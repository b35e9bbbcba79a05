#include "read_back.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <numeric>

#include "report/format.h"

namespace lamina {

TemporaryFile::TemporaryFile(std::string_view bytes) {
  const char* folder = getenv("TMPDIR");
  path_ = std::string(folder ? folder : "/tmp") + "/lamina_test_XXXXXX.lamina";
  int file = mkstemps(path_.data(), static_cast<int>(strlen(format::kFileSuffix)));
  bool written = file >= 0 && write(file, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size());
  EXPECT_TRUE(written) << path_;
  if (file >= 0) close(file);
}

TemporaryFile::~TemporaryFile() { unlink(path_.c_str()); }

ReadBack read_bytes(std::string_view bytes, bool merge_instances) {
  TemporaryFile file(bytes);
  LayerTree::Options options;
  options.details = [](auto, auto) { return true; };
  options.merge_instances = merge_instances;
  LayerTree tree(std::move(options));
  ReadBack result;
  result.processes = read_profile(file.path(), tree);
  tree.finish(result.report);
  return result;
}

namespace {

template <typename Row>
double sum_of(const std::vector<Row>& rows) {
  return std::accumulate(rows.begin(), rows.end(), 0.0,
                         [](double sum, const Row& row) { return sum + row.cuda_time_us; });
}

// A layer's time is that of the rows below it.
template <typename Row>
void expect_rows_add_up(const std::vector<Row>& rows) {
  for (const Row& row : rows) {
    double below = row.children.empty() ? row.cuda_time_us : sum_of(row.children);
    EXPECT_NEAR(row.cuda_time_us, below, 1e-3) << row.name;
    expect_rows_add_up(row.children);
  }
}

const PhaseReport* find_phase(const ReadBack& result, std::string_view name) {
  for (const PhaseReport& phase : result.report.phases) {
    if (phase.name == name) return &phase;
  }
  return nullptr;
}

void add_rows(std::string& text, const std::vector<ModelNode>& rows, size_t depth) {
  for (const ModelNode& row : rows) {
    text += fmt::format("{:{}}{} {}", "", depth * 2, row.name, row.cuda_time_us);
    text += row.trace.empty() ? "\n" : " [" + row.trace + "]\n";
    add_rows(text, row.children, depth + 1);
  }
}

void add_rows(std::string& text, const std::vector<SummaryNode>& rows, size_t depth) {
  for (const SummaryNode& row : rows) {
    text += fmt::format("{:{}}{} {} x{}\n", "", depth * 2, row.name, row.cuda_time_us, row.invocations);
    add_rows(text, row.children, depth + 1);
  }
}

}  // namespace

void expect_totals_add_up(const ReadBack& result) {
  double in_summaries = 0;
  double in_models = 0;
  for (const PhaseReport& phase : result.report.phases) {
    in_summaries += sum_of(phase.summary);
    expect_rows_add_up(phase.summary);
    for (const StepReport& step : phase.steps) {
      in_models += sum_of(step.model);
      expect_rows_add_up(step.model);
      EXPECT_NEAR(sum_of(step.summary), sum_of(step.model), 1e-3);
    }
  }
  double total = 0;
  for (const Process& process : result.processes) {
    const Account& account = process.account;
    total += account.total_us;
    auto count = [](const auto& counts) { return std::accumulate(counts.begin(), counts.end(), uint64_t{0}); };
    EXPECT_EQ(count(account.activities), count(account.by_placement));
  }
  EXPECT_NEAR(in_summaries, total, 1e-3);
  EXPECT_NEAR(in_models, total, 1e-3);
}

ReadBack read_back(ProfileBuilder& profile) {
  ReadBack result = read_bytes(profile.bytes());
  expect_totals_add_up(result);
  const Account& account = result.account();
  uint64_t shown = std::accumulate(account.activities.begin(), account.activities.end(), uint64_t{0});
  EXPECT_EQ(shown + account.not_shown, profile.activities());
  EXPECT_TRUE(result.processes[0].damage.empty());
  EXPECT_TRUE(result.processes[0].ended);
  return result;
}

std::string model_text(const ReadBack& result, std::string_view name, uint32_t number) {
  const PhaseReport* phase = find_phase(result, name);
  std::string text;
  if (!phase) return fmt::format("no phase {}", name);
  for (const StepReport& step : phase->steps) {
    if (step.number == number) add_rows(text, step.model, 0);
  }
  return text;
}

std::string summary_text(const ReadBack& result, std::string_view name) {
  const PhaseReport* phase = find_phase(result, name);
  std::string text;
  if (!phase) return fmt::format("no phase {}", name);
  add_rows(text, phase->summary, 0);
  return text;
}

std::vector<std::string> phase_names(const ReadBack& result) {
  std::vector<std::string> names;
  for (const PhaseReport& phase : result.report.phases) names.push_back(phase.name);
  return names;
}

}  // namespace lamina
