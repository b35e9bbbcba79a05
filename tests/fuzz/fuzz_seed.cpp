#include "fuzz_seed.h"

#include "read_back.h"
#include "report/records/profile_file.h"

namespace lamina {

using namespace format;

std::string seed_profile() {
  ProfileBuilder p;
  p.property("context", "{\"batch_size\": 4}");
  p.property("rank.RANK", "0");
  p.property("device.0.name", "GPU");
  p.define(RecordKind::kClockPair, 0, 0, ClockPairRecord{{}, 1000, 5000});
  p.define(RecordKind::kLoss, 0, 1, LossRecord{{}, 3});
  p.define(RecordKind::kThreadName, 0, 0, ThreadNameRecord{{}, 1, p.string("main")});
  ThreadBuilder& main = p.thread(0);
  main.state()
      .mark("lamina:context {\"model\": \"m\"}")
      .phase("prefill")
      .push("layers.0")
      .push("aten::mm(x)")
      .launch(1);
  main.pop().push("{'Module': 'a.b', 'Inputs': [[1]]}").launch(2, LaunchKind::kMemcpy).pop().pop().end_phase();
  main.push("capture").graph(1).node(1, 0, "_Z1fv").node(1, 1, "silu").pop();
  main.graph(2).clone_node(node_id(2, 0), node_id(1, 0)).clone_node(node_id(2, 1), node_id(1, 1));
  main.graph(3).clone_node(node_id(3, 0), node_id(1, 0)).destroy_graph(3).exec(2, 1);
  p.thread(1).push("other").graph(4).node(4, 0, "_Z1fv").node(4, 1, "silu").pop().clone_graph(5, 4).destroy_graph(4);
  main.phase("decode").launch_graph(3, 2).set_params(node_id(1, 0), 2).update_node(2, 1, node_id(5, 1)).update(2, 5);
  main.launch_graph(4, 2).state().end_phase().destroy_exec(2).destroy_graph(1);
  p.kernel(1, "_Z1fv", 2);
  p.memcpy_htod(2, 1);
  p.kernel(3, "_Z1fv", 1, {.node = node_id(2, 0)});
  p.kernel(0, "silu", 1, {.node = node_id(2, 1)});
  p.kernel(4, "_Z1fv", 5e9, {.node = node_id(2, 0)});
  p.memset_device(9, 1);
  return p.bytes();
}

std::string seed_records() {
  TemporaryFile file(seed_profile());
  ProfileFile profile(file.path());
  std::string result;
  for (Chunk chunk; profile.next(chunk);) {
    size_t size = chunk.records.size();
    auto kind = static_cast<uint32_t>(chunk.header.kind) - 1 + chunk.header.thread * 4;
    result += {static_cast<char>(kind), static_cast<char>(size & 0xff), static_cast<char>(size >> 8)};
    result.append(chunk.records.begin(), chunk.records.end());
  }
  return result;
}

}  // namespace lamina
