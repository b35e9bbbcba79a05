// What is said of the time that a GPU worked and had nothing to do; here are its words.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "report/tree/layer_report.h"

namespace lamina {

// Who makes the steps take as long as they do: "host-bound" when the GPU waited for launches for a tenth of the time or more,
// else "GPU-bound". Waiting is idle time in a step; gaps between kernels of one graph replay, and those so short that both
// kernels were queued (device_time.cpp), are not.
std::string_view bound_by(const GpuTime& time);

struct LabelledText {
  std::string label;
  std::string text;
};

// A few lines for people. None where no time is known.
std::vector<LabelledText> gpu_time_lines(const GpuTime& time);

}  // namespace lamina
