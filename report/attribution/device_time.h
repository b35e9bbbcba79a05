// When the devices of one process worked and when they had nothing to do, step by step: the union over all streams of what
// ran. A step is told by what ran in it alone; what other steps run meanwhile does not count.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "report/flat_map.h"
#include "report/tree/layer_tree.h"

namespace lamina {

// One kernel, memcpy or memset that has times. Nanoseconds.
struct DeviceWork {
  uint64_t start = 0;
  uint64_t end = 0;
  uint32_t device = 0;
  uint32_t row = 0;            // of the summary
  uint32_t graph_launch = 0;   // a number of its own for each; 0: of no graph
  bool communication = false;
};

class DeviceTime {
 public:
  explicit DeviceTime(LayerTree& tree) : tree_(tree) {}

  // Work of a step, or of none: then it only ends the idle time before the next step.
  void add(const DeviceWork& work, uint32_t step, Position root);
  void add_outside(const DeviceWork& work);
  // Tells the tree. Nothing may be added after it.
  void finish();

  // Work that came when what began kWindow later was counted already. It is not counted.
  uint64_t late() const { return late_; }

  // Work may come so many out of the order in which it began on its device.
  static constexpr size_t kWindow = 1u << 16;

 private:
  static constexpr uint32_t kNoStep = UINT32_MAX;

  struct Event {
    uint64_t start, end;
    uint32_t step;  // of steps_, or kNoStep
    uint32_t row;
    uint32_t graph_launch;
    bool communication;
  };
  struct Device {
    std::vector<Event> events;  // not counted yet; the first of them sorted
    size_t sorted = 0;
    uint64_t counted = 0;       // start of the last that is
    uint64_t covered = 0;       // end of all work so far
  };
  // A step on one device. Sums of nanoseconds.
  struct Step {
    Position root;
    uint64_t begin = 0;
    uint64_t covered = 0, covered_communication = 0, covered_other = 0;  // end of all work so far, of that kind
    uint64_t busy = 0, communication = 0, other = 0;
    uint64_t waiting = 0, before = 0;
    uint32_t graph_launch = 0;  // the last
  };

  void push(const DeviceWork& work, uint32_t step);
  void count(Device& device, size_t events);
  void count(Device& device, const Event& event);
  void end_idle(Step& step, const Event& event);

  LayerTree& tree_;
  std::map<uint32_t, Device> devices_;
  std::vector<Step> steps_;
  FlatMap<uint64_t, uint32_t> step_ids_{FlatMap<uint64_t, uint32_t>::Keys::kMixed};  // device << 32 | step to its place in steps_
  uint64_t late_ = 0;
};

}  // namespace lamina
