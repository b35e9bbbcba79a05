// Writes a large profile for scripts/bench-report: make_profile FOLDER KERNELS eager|graph|mixed
// A decoder of 32 layers of 12 kernels each decodes step by step, with the ranges of the PyTorch hook (modules and ops) around
// every launch; in graphs they were open at the capture. `mixed` replays in three steps of four.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "inject/file_writer.h"
#include "profile_builder.h"

namespace lamina {
namespace {

using namespace format;

constexpr uint32_t kLayers = 32;
constexpr uint32_t kGraphs = 4;  // of batch sizes, each replayed for a while
constexpr uint32_t kStepsOfAGraph = 64;
constexpr size_t kPieceBytes = 64u << 10;     // of a thread's stream, as inject/block_pool.h has it
constexpr size_t kActivityBytes = 1u << 20;   // of a chunk, as inject/activity.h has it
constexpr size_t kStepsAhead = 64;           // in a round: how far launches are ahead of the records of their kernels

// ---- the model

struct Kernel {
  std::string_view op;  // empty: launched by the module itself
  std::string_view name;
  uint32_t duration;  // ns
};
struct Module {
  std::string_view name;
  std::string_view path;
  std::vector<Kernel> kernels = {};
  std::vector<Module> children = {};
};

constexpr std::string_view kNorm = "_ZN4vllm26fused_add_rms_norm_kernelIN3c108BFloat16ELi8EEEvPT_lS4_PKS3_fii";
constexpr std::string_view kSplitK = "_ZN8cublasLt19splitKreduce_kernelILi32ELi16EifLb1EEEvPKT1_Pf";

const Module kLayer = {"LlamaDecoderLayer", "", {}, {
    {"RMSNorm(weight=bfloat16[4096])", "input_layernorm", {{"_C::fused_add_rms_norm(bfloat16[64, 4096], bfloat16[64, 4096], bfloat16[4096], 1e-05)", kNorm, 3200}}},
    {"LlamaAttention", "self_attn", {}, {
        {"QKVParallelLinear(weight=bfloat16[6144, 4096])", "qkv_proj", {{"aten::linear(bfloat16[64, 4096], bfloat16[6144, 4096], None)", "nvjet_sm90_tst_128x8_64x12_4x1_v_bz_TNT", 14100}}},
        {"RotaryEmbedding", "rotary_emb", {{"", "_ZN4vllm23rotary_embedding_kernelIN3c108BFloat16ELb1EEEvPKlPT_S5_PKS4_illiii", 2900}}},
        {"Attention", "attn", {{"_C_cache_ops::reshape_and_cache_flash(bfloat16[64, 8, 128], bfloat16[64, 8, 128])", "_ZN4vllm30reshape_and_cache_flash_kernelI13__nv_bfloat16S1_LNS_18Fp8KVCacheDataTypeE0EEEvPKT_", 2100},
                              {"_vllm_fa3_C::fwd(bfloat16[64, 32, 128], bfloat16[4096, 16, 8, 128])", "_ZN7cutlass13device_kernelIN5flash11enable_sm90INS1_16FlashAttnFwdSm90EEEEEvNT_6ParamsE", 26400}}},
        {"RowParallelLinear(weight=bfloat16[4096, 4096])", "o_proj", {{"aten::linear(bfloat16[64, 4096], bfloat16[4096, 4096], None)", "nvjet_sm90_tst_64x8_64x16_2x1_v_bz_splitK_TNT", 10900},
                                                                     {"aten::linear(bfloat16[64, 4096], bfloat16[4096, 4096], None)", kSplitK, 1700}}}}},
    {"RMSNorm(weight=bfloat16[4096])", "post_attention_layernorm", {{"_C::fused_add_rms_norm(bfloat16[64, 4096], bfloat16[64, 4096], bfloat16[4096], 1e-05)", kNorm, 3200}}},
    {"LlamaMLP", "mlp", {}, {
        {"MergedColumnParallelLinear(weight=bfloat16[28672, 4096])", "gate_up_proj", {{"aten::linear(bfloat16[64, 4096], bfloat16[28672, 4096], None)", "nvjet_sm90_tst_256x8_64x6_4x1_v_bz_TNT", 46300}}},
        {"SiluAndMul", "act_fn", {{"_C::silu_and_mul(bfloat16[64, 14336], bfloat16[64, 28672])", "_ZN4vllm18act_and_mul_kernelIN3c108BFloat16EXadL_ZNS_11silu_kernelIS2_EET_RKS4_EELb1EEEvPS4_PS5_i", 1500}}},
        {"RowParallelLinear(weight=bfloat16[4096, 14336])", "down_proj", {{"aten::linear(bfloat16[64, 14336], bfloat16[4096, 14336], None)", "nvjet_sm90_tst_128x8_64x12_4x1_v_bz_splitK_TNT", 25900},
                                                                         {"aten::linear(bfloat16[64, 14336], bfloat16[4096, 14336], None)", kSplitK, 1700}}}}}}};

Module make_model() {
  Module model{"LlamaForCausalLM", "model", {}, {{"LlamaModel", "model", {}, {}}}};
  auto& parts = model.children[0].children;
  parts.push_back({"VocabParallelEmbedding(weight=bfloat16[128256, 4096])", "embed_tokens", {{"aten::embedding(bfloat16[128256, 4096], int64[64])", "_ZN2at6native40indexSelectSmallIndexIN3c108BFloat16EljLi2ELi2ELin2EEEvNS_4cuda6detail10TensorInfoIT_T1_EE", 7400}}});
  for (uint32_t i = 0; i < kLayers; ++i) parts.push_back(kLayer);
  parts.push_back({"RMSNorm(weight=bfloat16[4096])", "norm", {{"", kNorm, 3200}}});
  return model;
}
const Module kSampler = {"Sampler", "sampler", {{"aten::argmax(float32[64, 128256], -1, False)", "_ZN2at6native13reduce_kernelILi512ELi1ENS0_8ReduceOpIfNS0_9ArgMaxOpsIfEEjlLi4ELi4EEEEEvT1_", 60000},
                                                {"aten::index_put_(int64[64])", "_ZN2at6native24index_elementwise_kernelILi128ELi4EZNS0_16gpu_index_kernelIEEvE", 9800}}};

// ---- the file

class Profile {
 public:
  explicit Profile(const std::string& folder) {
    if (!file_.open(folder)) fail();
    put(definitions_, RecordKind::kClockPair, 0, 0, ClockPairRecord{{}, 1, gpu_time_});
    put(thread_, RecordKind::kThreadState, 0, 0, ThreadStateRecord{{}, kStartupStep, 0});
  }

  void push(uint32_t context) {
    put(thread_, RecordKind::kPush, 0, context, PushRecord{{}, host_time_ += 400 + noise(500)});
    open_.push_back(context);
  }
  void push(std::string_view text, bool hook = true) { push(context(open_.empty() ? kRootContext : open_.back(), text, hook)); }
  void pop() {
    open_.pop_back();
    put(thread_, RecordKind::kPop, 0, static_cast<uint32_t>(open_.size()), PopRecord{{}, host_time_ += 300 + noise(400)});
  }

  void begin_step(std::string_view phase) {
    push(context(kRootContext, "phase:" + std::string(phase), false, ContextKind::kPhase));
    uint32_t message = string("phase:" + std::string(phase));
    put(definitions_, RecordKind::kStep, 0, ++step_, StepRecord{{}, string(phase), message, host_time_});
    put(thread_, RecordKind::kStepChange, 0, step_, StepChangeRecord{});
  }
  void end_step() {
    pop();
    put(definitions_, RecordKind::kStepEnd, 0, step_, StepEndRecord{{}, host_time_});
    put(thread_, RecordKind::kStepChange, 0, kNoStep, StepChangeRecord{});
    if (thread_.size() >= kPieceBytes) cut_piece();
    if (++steps_ahead_ >= kStepsAhead) write_round();
  }

  void launch(const Kernel& kernel) {
    put_launch(LaunchKind::kKernel, 0);
    ran(RecordKind::kKernelSite, site(kernel, 0), kernel.duration, host_time_ += 3000 + noise(2000));
  }
  void copy(uint64_t bytes) {
    put_launch(LaunchKind::kMemcpy, 0);
    MemcpySiteRecord copied{};
    copied.stream = 20, copied.copy_kind = 2, copied.source_kind = 3, copied.destination_kind = 2, copied.bytes = bytes;
    ran(RecordKind::kMemcpySite, copied, 1800, host_time_ += 3000 + noise(2000));
  }

  // A graph under construction; then what is launched becomes a node.
  void begin_graph(uint32_t id) {
    put_graph(RecordKind::kGraphCreated, id, GraphCreatedRecord{}, 0);
    nodes_[id].clear();
  }
  void node(uint32_t graph, const Kernel& kernel) {
    auto number = static_cast<uint32_t>(nodes_[graph].size());
    put_graph(RecordKind::kGraphNode, open_.back(), GraphNodeRecord{{}, node_id(graph, number)}, string(kernel.name));
    nodes_[graph].push_back(&kernel);
  }
  void instantiate(uint32_t exec, uint32_t graph) {
    put_graph(RecordKind::kGraphCreated, exec, GraphCreatedRecord{}, 0);
    for (uint32_t i = 0; i < nodes_[graph].size(); ++i) {
      put_graph(RecordKind::kGraphNodeCloned, 0, GraphNodeClonedRecord{{}, node_id(exec, i), node_id(graph, i)}, 0);
    }
    put_graph(RecordKind::kGraphExec, exec, GraphExecRecord{}, graph);
    nodes_[exec] = nodes_[graph];
  }
  void replay(uint32_t exec) {
    put_launch(LaunchKind::kGraph, exec);
    uint64_t host = host_time_ += 30'000;
    uint32_t number = 0;
    for (const Kernel* kernel : nodes_[exec]) ran(RecordKind::kKernelSite, site(*kernel, node_id(exec, number++)), kernel->duration, host);
  }

  uint64_t kernels() const { return kernels_; }

  void finish() {
    write_round();
    TrailerRecord trailer{{}, activities_, file_.chunks(), gpu_time_};
    std::vector<char> records;
    put(records, RecordKind::kTrailer, 0, 0, trailer);
    ChunkHeader header{};
    header.kind = ChunkKind::kTrailer;
    write(header, records);
    printf("%s: %llu kernels in %u steps\n", file_.path().c_str(), static_cast<unsigned long long>(kernels_), step_);
  }

 private:
  [[noreturn]] void fail() {
    fprintf(stderr, "make_profile: %s\n", file_.problem().c_str());
    exit(1);
  }
  template <typename Record>
  static void put(std::vector<char>& into, RecordKind kind, uint8_t flags, uint32_t id, Record record) {
    RecordHeader header{kind, flags, sizeof(Record) / 8, id};
    memcpy(&record, &header, sizeof(header));
    const char* bytes = reinterpret_cast<const char*>(&record);
    into.insert(into.end(), bytes, bytes + sizeof(Record));
  }
  void put_launch(LaunchKind kind, uint32_t exec) {
    uint32_t context = open_.empty() ? kRootContext : open_.back();
    LaunchRecord launched{{}, context, exec, exec != 0 ? graph_records_ : 0, 0};
    put(thread_, RecordKind::kLaunch, static_cast<uint8_t>(kind), correlation_ += 3, launched);  // other calls have ids too
  }
  template <typename Record>
  void put_graph(RecordKind kind, uint32_t id, Record record, uint32_t other) {
    GraphHeader header{{}, graph_records_++, other};
    memcpy(&record, &header, sizeof(header));
    put(thread_, kind, 0, id, record);
  }

  uint32_t string(std::string_view text, uint32_t domain = 0) {
    auto [known, added] = strings_.try_emplace(std::string(text), static_cast<uint32_t>(strings_.size() + 1));
    if (added) append_record(definitions_, RecordKind::kString, 0, known->second, StringRecord{{}, static_cast<uint32_t>(text.size()), domain}, text);
    return known->second;
  }
  uint32_t context(uint32_t parent, std::string_view text, bool hook, ContextKind kind = ContextKind::kRange) {
    uint32_t name = string(text, hook ? string("lamina") : 0);
    auto [known, added] = contexts_.try_emplace({parent, name}, static_cast<uint32_t>(contexts_.size() + 2));
    if (added) put(definitions_, RecordKind::kContext, static_cast<uint8_t>(kind), known->second, ContextRecord{{}, parent, name});
    return known->second;
  }

  KernelSiteRecord site(const Kernel& kernel, uint64_t graph_node) {
    KernelSiteRecord record{};
    record.name = string(kernel.name);
    record.stream = 7;
    record.graph_node = graph_node;
    record.grid[0] = static_cast<int32_t>(kernel.duration / 100);
    record.block[0] = 256;
    return record;
  }
  // Not before the host has said so, nor before what is in front of it.
  template <typename Site>
  void ran(RecordKind kind, Site site, uint32_t duration, uint64_t host) {
    kernels_ += kind == RecordKind::kKernelSite;
    ++activities_;
    uint64_t start = std::max(gpu_time_ + 800 + noise(10) * 32, kEpoch + host);
    duration += noise(duration / 256 + 2) * 32;  // the GPU's clock has steps of 32 ns
    if (activity_.empty()) base_time_ = last_start_ = start;
    std::string key(reinterpret_cast<const char*>(&site), sizeof(site));
    auto [known, added] = sites_.try_emplace(std::move(key), static_cast<uint32_t>(sites_.size() + 1));
    if (added) put(activity_, kind, 0, known->second, site);
    put(activity_, RecordKind::kActivity, 0, known->second, ActivityRecord{{}, correlation_, duration, static_cast<int32_t>(start - last_start_), 0});
    last_start_ = start;
    gpu_time_ = start + duration;
    if (activity_.size() >= kActivityBytes) cut_activity();
  }

  uint32_t noise(uint32_t below) {
    noise_ = noise_ * 6364136223846793005u + 1442695040888963407u;
    return static_cast<uint32_t>(noise_ >> 33) % below;
  }

  void cut_piece() {
    pieces_.push_back(std::move(thread_));
    thread_.clear();
    put(thread_, RecordKind::kThreadState, 0, 0, ThreadStateRecord{{}, kNoStep, 0});
  }
  void cut_activity() {
    full_.emplace_back(base_time_, std::move(activity_));
    activity_.clear();
    sites_.clear();
  }
  void write(ChunkHeader header, std::vector<char>& records) {
    if (!records.empty() && !file_.write(header, records)) fail();
    records.clear();
  }
  void write_round() {
    steps_ahead_ = 0;
    cut_piece();
    ChunkHeader header{};
    header.kind = ChunkKind::kDefinitions;
    write(header, definitions_);
    header.kind = ChunkKind::kThread;
    for (auto& piece : pieces_) {
      header.sequence = sequence_++;
      write(header, piece);
    }
    pieces_.clear();
    if (!activity_.empty()) cut_activity();
    header = {};
    header.kind = ChunkKind::kActivity;
    for (auto& [base, records] : full_) {
      header.base_time = base;
      write(header, records);
    }
    full_.clear();
  }

  static constexpr uint64_t kEpoch = 1'700'000'000'000'000'000;
  FileWriter file_;
  std::vector<char> definitions_, thread_, activity_;
  std::vector<std::vector<char>> pieces_;
  std::vector<std::pair<uint64_t, std::vector<char>>> full_;
  std::unordered_map<std::string, uint32_t> strings_, sites_;
  std::map<std::pair<uint32_t, uint32_t>, uint32_t> contexts_;
  std::map<uint32_t, std::vector<const Kernel*>> nodes_;  // of each graph
  std::vector<uint32_t> open_;
  uint64_t host_time_ = 1000, gpu_time_ = kEpoch, base_time_ = 0, last_start_ = 0;
  uint64_t kernels_ = 0, activities_ = 0;
  uint32_t step_ = kFirstStep - 1, correlation_ = 100, sequence_ = 0, graph_records_ = 0;
  size_t steps_ahead_ = 0;
  uint64_t noise_ = 1;
};

// ---- the run

// Calls `launch` for each kernel, in the ranges of its module and op.
template <typename Launch>
void call(Profile& profile, const Module& module, const std::string& path, const Launch& launch) {
  profile.push(std::string(module.name) + " @ " + path);
  uint32_t layer = 0;
  for (const Module& child : module.children) {
    std::string name = child.path.empty() ? "layers." + std::to_string(layer++) : std::string(child.path);
    call(profile, child, path + "." + name, launch);
  }
  for (const Kernel& kernel : module.kernels) {
    if (!kernel.op.empty()) profile.push(kernel.op);
    launch(kernel);
    if (!kernel.op.empty()) profile.pop();
  }
  profile.pop();
}

void run(Profile& profile, uint64_t kernels, std::string_view mode) {
  const Module model = make_model();
  auto launch = [&](const Kernel& kernel) { profile.launch(kernel); };
  profile.begin_step("prefill");
  call(profile, model, "LlamaForCausalLM", launch);
  profile.end_step();
  for (uint32_t i = 1; i <= kGraphs && mode != "eager"; ++i) {
    profile.begin_graph(i);
    call(profile, model, "LlamaForCausalLM", [&](const Kernel& kernel) { profile.node(i, kernel); });
    profile.instantiate(kGraphs + i, i);
  }
  for (uint32_t step = 0; profile.kernels() < kernels; ++step) {
    profile.begin_step("decode");
    if (mode == "eager" || (mode == "mixed" && step % 4 == 0)) {
      call(profile, model, "LlamaForCausalLM", launch);
    } else {
      profile.push("LlamaForCausalLM @ LlamaForCausalLM");
      profile.replay(kGraphs + 1 + step / kStepsOfAGraph % kGraphs);
      profile.pop();
    }
    call(profile, kSampler, "Sampler", launch);
    profile.copy(512);
    profile.end_step();
  }
  profile.finish();
}

}  // namespace
}  // namespace lamina

int main(int argc, char** argv) {
  std::string_view mode = argc == 4 ? argv[3] : "";
  if (mode != "eager" && mode != "graph" && mode != "mixed") {
    fprintf(stderr, "usage: make_profile FOLDER KERNELS eager|graph|mixed\n");
    return 2;
  }
  lamina::Profile profile(argv[1]);
  lamina::run(profile, strtoull(argv[2], nullptr, 10), mode);
}
