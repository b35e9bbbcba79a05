#include "report/render/gpu_time_text.h"

#include "report/format.h"

namespace lamina {
namespace {

constexpr double kHostBound = 0.1;

double percent(double part, double whole) { return whole > 0 ? 100 * part / whole : 0; }

std::string ms(double us) { return fmt::format("{:.3f} ms", us / 1000); }

}  // namespace

std::string_view bound_by(const GpuTime& time) {
  return time.waiting_us >= kHostBound * time.span_us && time.span_us > 0 ? "host-bound" : "GPU-bound";
}

std::vector<LabelledText> gpu_time_lines(const GpuTime& time) {
  if (time.span_us <= 0) return {};
  double idle = time.span_us - time.busy_us;
  std::vector<LabelledText> lines = {
      {"GPU busy", fmt::format("{} of {} ({:.2f}%)", ms(time.busy_us), ms(time.span_us), percent(time.busy_us, time.span_us))},
      {"GPU idle", fmt::format("{} ({:.2f}%); before the steps {} more, of no layer", ms(idle), percent(idle, time.span_us), ms(time.before_us))}};
  if (time.communication_us > 0) {
    lines.push_back({"communication", fmt::format("{}, of it {} exposed: nothing else ran", ms(time.communication_us), ms(time.exposed_communication_us))});
  }
  lines.push_back({std::string(bound_by(time)), fmt::format("the GPU waited for launches in {:.2f}% of the time", percent(time.waiting_us, time.span_us))});
  return lines;
}

}  // namespace lamina
