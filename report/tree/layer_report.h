// The finished result that every renderer reads: phases, their steps, and for each a tree of layers. It comes from a
// profile (layer_tree.h) or from a layerwise JSON (layerwise_json.h), and knows nothing of records.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "report/tree/json_object.h"

namespace lamina {

// When a GPU worked during a step. Microseconds; over several devices the sum.
struct GpuTime {
  double span_us = 0;                    // from the begin of its first kernel to the end of its last
  double busy_us = 0;                    // at least one stream at work
  double communication_us = 0;           // NCCL and its like at work on some stream
  double exposed_communication_us = 0;   // ... and nothing else
  double waiting_us = 0;  // of the idle time (span less busy): where the host launched late. Not between kernels of one replay
  double before_us = 0;   // outside of the span: idle since what ran before the step. Of no layer
};

// The shortest and the longest of several executions. Microseconds.
struct Durations {
  double min_us = 0;
  double max_us = 0;
};

// A row of the summary table: all calls with the same path of names.
struct SummaryNode {
  std::string name;
  double cuda_time_us = 0;
  double pct_cuda_time = 0;  // 0..100, of the sum over the roots
  double invocations = 0;
  std::vector<SummaryNode> children;
  double idle_before_us = 0;  // of its kernels, and of those inside: the GPU had nothing to do until they came
  std::optional<Durations> each = {};  // of a kernel, memcpy or memset: its executions. Not in the summary of a layerwise JSON
};

// A row of the model table: one call, or one kernel execution (cpu_time_us 0).
struct ModelNode {
  std::string name;
  double cpu_time_us = 0;
  double cuda_time_us = 0;
  double pct_cuda_time = 0;
  std::string trace;  // kernels: enclosing ops, innermost first, " <- " between; in no op the module with its inputs
  std::vector<ModelNode> children;
  std::string path = {};  // modules: the names of the instance, from the root down; empty where it is not known
};

// One opening of a phase: `decode_7` is step 7 of phase `decode`.
struct StepReport {
  uint32_t number = 1;  // from 1
  JsonObject metadata = JsonObject("num_running_seqs");  // as the layerwise JSON has it
  std::vector<SummaryNode> summary;
  std::vector<ModelNode> model;  // may be left out (load_report.h)
  std::optional<GpuTime> gpu = {};  // of a profile, if asked for; never between phases, which is not one stretch of time
};

struct PhaseReport {
  std::string name = {};
  uint64_t step_count = 0;             // steps recorded; `steps` may hold fewer of them
  std::vector<SummaryNode> summary = {};    // the sum of all steps
  std::vector<SummaryNode> libraries = {};  // what each has launched in all steps; the most time first. Not of a layerwise JSON
  std::vector<StepReport> steps = {};       // with details, in order; with any, the first is there when step_count > 0
  std::optional<GpuTime> gpu = {};          // the sum of all steps; as StepReport::gpu has it
};

struct LayerReport {
  JsonObject context = {};          // as the layerwise JSON has it
  std::vector<PhaseReport> phases;  // in order of first opening
};

}  // namespace lamina
