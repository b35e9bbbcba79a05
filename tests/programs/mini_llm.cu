// mini_llm: a small but real LLM inference program to profile. A Llama-like decoder with random bf16 weights runs one
// prefill and a number of greedy decode steps, with cuBLAS for the matrix products and kernels of its own for the rest.
// It marks its phases (phase:prefill, phase:decode) and its modules (LlamaForCausalLM, layers.0, self_attn, ...) with
// NVTX ranges. Eager steps and a replayed CUDA graph launch the same kernels and give the same tokens.
//
//   --small          test size: hidden 256, 4 layers, vocabulary 1024, prompt 16, 8 steps, batch 2
//                    (default: a 7B model, prompt 512, 32 steps, batch 4)
//   --layers N       decoder layers
//   --prompt N       prompt tokens of each sequence
//   --steps N        decode steps
//   --batch N        sequences
//   --seed N         seed of weights and prompts
//   --graph          capture one decode step into a CUDA graph and replay it for each step
//   --repeat N       run prefill and decode N times over
//   --sleep-ms N     sleep on the host between decode steps (the decode time includes it)
//   --print-tokens   print the tokens of each sequence (default); --no-print-tokens leaves them out
//   --help           print the options
//
// Exit status: 0, 1 after a CUDA or cuBLAS error, 2 after a wrong option.
#include <cublas_v2.h>
#include <cuda_runtime.h>
#include <nvtx3/nvToolsExt.h>

#include <chrono>
#include <climits>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <type_traits>
#include <vector>

#include "mini_llm_kernels.cuh"

namespace {

constexpr char kUsage[] =
    "usage: mini_llm [--small] [--layers N] [--prompt N] [--steps N] [--batch N] [--seed N] [--graph] [--repeat N]\n"
    "                [--sleep-ms N] [--print-tokens | --no-print-tokens] [--help]\n"
    "Runs a Llama-like model with random weights: one prefill, then greedy decode steps, in eager mode or as a CUDA\n"
    "graph. The sizes are those of a 7B model; --small takes test sizes instead. Other options override either.\n";

[[noreturn]] void fail(const char* file, int line, const char* call, const char* error) {
  const char* slash = std::strrchr(file, '/');
  std::fprintf(stderr, "%s:%d: %s: %s\n", slash ? slash + 1 : file, line, call, error);
  std::exit(1);
}

void check(cudaError_t error, const char* file, int line, const char* call) {
  if (error != cudaSuccess) fail(file, line, call, cudaGetErrorString(error));
}

void check(cublasStatus_t status, const char* file, int line, const char* call) {
  if (status != CUBLAS_STATUS_SUCCESS) fail(file, line, call, cublasGetStatusString(status));
}

#define CHECK(call) check((call), __FILE__, __LINE__, #call)

// A macro, so that an error names the line of the launch.
#define LAUNCH(kernel, grid, block, stream, ...)                      \
  do {                                                                \
    kernel<<<(grid), (block), 0, (stream)>>>(__VA_ARGS__);            \
    check(cudaGetLastError(), __FILE__, __LINE__, "launch " #kernel); \
  } while (0)

template <auto kDestroy>
struct Destroyer {
  template <typename T>
  void operator()(T* object) const {
    CHECK(kDestroy(object));
  }
};

template <typename T, auto kDestroy>
using Handle = std::unique_ptr<std::remove_pointer_t<T>, Destroyer<kDestroy>>;
using Stream = Handle<cudaStream_t, cudaStreamDestroy>;
using Event = Handle<cudaEvent_t, cudaEventDestroy>;
using Cublas = Handle<cublasHandle_t, cublasDestroy>;
using GraphExec = Handle<cudaGraphExec_t, cudaGraphExecDestroy>;
template <typename T>
using DeviceArray = std::unique_ptr<T[], Destroyer<cudaFree>>;

template <typename T>
DeviceArray<T> device_array(size_t count) {
  void* data = nullptr;
  CHECK(cudaMalloc(&data, count * sizeof(T)));
  return DeviceArray<T>(static_cast<T*>(data));
}

// An NVTX range as long as its scope; none without a name.
class Range {
 public:
  explicit Range(const char* name) : open_(name != nullptr) {
    if (open_) nvtxRangePushA(name);
  }
  ~Range() {
    if (open_) nvtxRangePop();
  }
  Range(const Range&) = delete;

 private:
  const bool open_;
};

struct Options {
  Heads heads{32, 32, 128};
  int hidden = 4096, layers = 32, intermediate = 11008, vocab = 32000;
  int prompt = 512, steps = 32, batch = 4;
  int seed = 1, repeat = 1, sleep_ms = 0;
  bool graph = false, print_tokens = true;
};

void use_small_sizes(Options& options) {
  options.heads = {4, 2, 64};
  options.hidden = 256, options.layers = 4, options.intermediate = 688, options.vocab = 1024;
  options.prompt = 16, options.steps = 8, options.batch = 2;
}

[[noreturn]] void reject(const std::string& what) {
  std::fprintf(stderr, "mini_llm: %s (see --help)\n", what.c_str());
  std::exit(2);
}

struct Number {
  int* value;
  int min, max;
};

void parse_number(const std::string& option, const char* text, const Number& number) {
  if (!text) reject(option + " needs a value");
  char* end = nullptr;
  const long value = std::strtol(text, &end, 10);
  if (end == text || *end || value < number.min || value > number.max) {
    reject(option + " takes a number from " + std::to_string(number.min) + " to " + std::to_string(number.max) +
           ", not '" + text + "'");
  }
  *number.value = int(value);
}

bool set_flag(const std::string& name, Options& options) {
  if (name == "--help") {
    std::fputs(kUsage, stdout);
    std::exit(0);
  }
  if (name == "--graph") options.graph = true;
  if (name == "--print-tokens") options.print_tokens = true;
  if (name == "--no-print-tokens") options.print_tokens = false;
  return name == "--small" || name == "--graph" || name == "--print-tokens" || name == "--no-print-tokens";
}

Options parse_options(int argc, char** argv) {
  Options options;
  // The sizes come first, so that the other options override them wherever --small stands.
  for (int i = 1; i < argc; ++i) {
    if (!std::strcmp(argv[i], "--small")) use_small_sizes(options);
  }
  const std::map<std::string, Number> numbers = {
      {"--layers", {&options.layers, 1, 1000}},        {"--prompt", {&options.prompt, 1, 65536}},
      {"--steps", {&options.steps, 1, 1000000}},       {"--batch", {&options.batch, 1, 1024}},
      {"--seed", {&options.seed, 0, INT_MAX}},         {"--repeat", {&options.repeat, 1, INT_MAX}},
      {"--sleep-ms", {&options.sleep_ms, 0, 3600000}},
  };
  for (int i = 1; i < argc; ++i) {
    const std::string name = argv[i];
    const auto number = numbers.find(name);
    if (number != numbers.end()) {
      parse_number(name, argv[++i], number->second);  // argv ends with a null
    } else if (!set_flag(name, options)) {
      reject("unknown option '" + name + "'");
    }
  }
  return options;
}

struct Layer {
  std::string name;
  DeviceArray<bf16> input_norm, qkv, o, post_attention_norm, gate_up, down;
  DeviceArray<bf16> keys, values;
};

// One pass through the model: the prompts (prefill) or one token of each sequence (decode).
struct Step {
  int* ids;           // on the device
  const int* upload;  // the ids on the host, to copy there first, or null
  int tokens, rows;   // of one sequence, of all
};

class Llama {
 public:
  explicit Llama(const Options& options);
  // Runs both phases once without ranges, so that cuBLAS and the kernels are loaded before a capture or a timing.
  void warm_up();
  // Back to position 0. The cache stays: each entry is written again before it is read.
  void reset() { CHECK(cudaMemsetAsync(start_.get(), 0, sizeof(int), stream())); }
  void prefill() { forward({prompt_ids_.get(), prompts_.data(), options_.prompt, options_.batch * options_.prompt}); }
  void decode() { forward({next_ids_.get(), nullptr, 1, options_.batch}); }
  GraphExec capture_decode();
  // The tokens of each sequence in turn: that of prefill, then one a decode step.
  std::vector<int> output() const;
  cudaStream_t stream() const { return stream_.get(); }

 private:
  void allocate();
  DeviceArray<bf16> random_weights(size_t count, float centre, float width);
  DeviceArray<bf16> projection(int out, int in) { return random_weights(size_t(out) * in, 0.0f, std::sqrt(3.0f / in)); }
  DeviceArray<bf16> norm_weights() { return random_weights(options_.hidden, 1.0f, 0.1f); }
  Layer make_layer(int index);

  void forward(const Step& step);
  void embed(const Step& step);
  void run_layer(const Layer& layer, const Step& step, bool first);
  void attend(const Layer& layer, const Step& step);
  void mlp(const Layer& layer, const Step& step);
  void norm(const char* name, const bf16* weights, const Step& step, bool add);
  void gemm(void* y, cudaDataType type, const bf16* weights, const bf16* x, int out, int in, int rows, int x_stride);
  void project(const char* name, bf16* y, const bf16* weights, const bf16* x, int out, int in, const Step& step);
  void sample(const Step& step);

  Range range(const char* name) const { return Range(annotate_ ? name : nullptr); }
  Span span(const Step& step) const { return {start_.get(), step.tokens}; }
  int output_size() const { return options_.steps + 1; }

  const Options options_;
  std::vector<int> prompts_;  // on the host
  Stream stream_;
  DeviceArray<char> workspace_;
  Cublas cublas_;
  uint64_t tensors_ = 0;  // made so far: each draws from a seed of its own
  bool annotate_ = true;

  DeviceArray<bf16> embedding_, final_norm_, lm_head_;
  std::vector<Layer> layers_;
  DeviceArray<bf16> x_, residual_, normed_, qkv_, attention_, gate_up_, activated_;
  DeviceArray<float> logits_;
  DeviceArray<int> prompt_ids_, next_ids_, output_, start_;
};

Llama::Llama(const Options& options) : options_(options) {
  CHECK(cudaSetDevice(0));
  cudaStream_t stream = nullptr;
  CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  stream_.reset(stream);
  cublasHandle_t cublas = nullptr;
  CHECK(cublasCreate(&cublas));
  cublas_.reset(cublas);
  // A workspace of our own: cuBLAS must not allocate in a capture, and has the same choice of algorithms in both modes.
  constexpr size_t kWorkspace = 32 << 20;
  workspace_ = device_array<char>(kWorkspace);
  CHECK(cublasSetStream(cublas, stream));  // would drop the workspace if it came after
  CHECK(cublasSetWorkspace(cublas, workspace_.get(), kWorkspace));

  embedding_ = random_weights(size_t(options.vocab) * options.hidden, 0.0f, std::sqrt(3.0f));
  for (int i = 0; i < options.layers; ++i) layers_.push_back(make_layer(i));
  final_norm_ = norm_weights();
  lm_head_ = projection(options.vocab, options.hidden);
  allocate();
  reset();
  CHECK(cudaStreamSynchronize(stream));
}

// Uniform in +-sqrt(3 / in), a projection has variance 1 / in and keeps that of its input: activations stay near 1.
DeviceArray<bf16> Llama::random_weights(size_t count, float centre, float width) {
  constexpr int kBlocks = 1024;
  DeviceArray<bf16> weights = device_array<bf16>(count);
  const uint64_t seed = random_bits(options_.seed, tensors_++);
  LAUNCH(init_weights_kernel, kBlocks, kBlockSize, stream(), weights.get(), count, centre, width, seed);
  return weights;
}

Layer Llama::make_layer(int index) {
  const int hidden = options_.hidden, intermediate = options_.intermediate;
  const size_t cache_size = size_t(options_.batch) * (options_.prompt + options_.steps) * options_.heads.kv_size();
  Layer layer;
  layer.name = "layers." + std::to_string(index);
  layer.input_norm = norm_weights();
  layer.qkv = projection(options_.heads.row_size(), hidden);
  layer.o = projection(hidden, options_.heads.query_size());
  layer.post_attention_norm = norm_weights();
  layer.gate_up = projection(2 * intermediate, hidden);
  layer.down = projection(hidden, intermediate);
  layer.keys = device_array<bf16>(cache_size);
  layer.values = device_array<bf16>(cache_size);
  return layer;
}

void Llama::allocate() {
  const size_t batch = options_.batch, rows = batch * options_.prompt;
  for (DeviceArray<bf16>* array : {&x_, &residual_, &normed_}) *array = device_array<bf16>(rows * options_.hidden);
  qkv_ = device_array<bf16>(rows * options_.heads.row_size());
  attention_ = device_array<bf16>(rows * options_.heads.query_size());
  gate_up_ = device_array<bf16>(rows * 2 * options_.intermediate);
  activated_ = device_array<bf16>(rows * options_.intermediate);
  logits_ = device_array<float>(batch * options_.vocab);
  prompt_ids_ = device_array<int>(rows);
  next_ids_ = device_array<int>(batch);
  output_ = device_array<int>(batch * output_size());
  start_ = device_array<int>(1);
  prompts_.resize(rows);
  const uint64_t seed = random_bits(options_.seed, tensors_++);
  for (size_t i = 0; i < rows; ++i) prompts_[i] = int(random_bits(seed, i) % options_.vocab);
}

void Llama::warm_up() {
  annotate_ = false;
  prefill();
  decode();
  annotate_ = true;
  reset();
  CHECK(cudaStreamSynchronize(stream()));
}

// The captured step is not run, so the state stays as it is.
GraphExec Llama::capture_decode() {
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t exec = nullptr;
  CHECK(cudaStreamBeginCapture(stream(), cudaStreamCaptureModeGlobal));
  decode();
  CHECK(cudaStreamEndCapture(stream(), &graph));
  CHECK(cudaGraphInstantiate(&exec, graph, 0));
  CHECK(cudaGraphDestroy(graph));
  CHECK(cudaGraphUpload(exec, stream()));
  return GraphExec(exec);
}

std::vector<int> Llama::output() const {
  std::vector<int> tokens(size_t(options_.batch) * output_size());
  CHECK(cudaMemcpyAsync(tokens.data(), output_.get(), tokens.size() * sizeof(int), cudaMemcpyDeviceToHost, stream()));
  CHECK(cudaStreamSynchronize(stream()));
  return tokens;
}

void Llama::forward(const Step& step) {
  {
    const Range causal_lm = range("LlamaForCausalLM");
    {
      const Range model = range("LlamaModel");
      embed(step);
      for (const Layer& layer : layers_) run_layer(layer, step, &layer == &layers_.front());
      norm("norm", final_norm_.get(), step, true);
    }
    // Logits only of the last token of each sequence: the stride leaps over the others.
    const Range lm_head = range("lm_head");
    const int hidden = options_.hidden;
    gemm(logits_.get(), CUDA_R_32F, lm_head_.get(), normed_.get() + size_t(step.tokens - 1) * hidden, options_.vocab,
         hidden, options_.batch, step.tokens * hidden);
  }
  sample(step);
}

void Llama::embed(const Step& step) {
  const Range embed_tokens = range("embed_tokens");
  if (step.upload) {
    CHECK(cudaMemcpyAsync(step.ids, step.upload, step.rows * sizeof(int), cudaMemcpyHostToDevice, stream()));
  }
  LAUNCH(embedding_kernel, step.rows, kBlockSize, stream(), x_.get(), embedding_.get(), step.ids, options_.hidden);
}

void Llama::run_layer(const Layer& layer, const Step& step, bool first) {
  const Range decoder_layer = range(layer.name.c_str());
  norm("input_layernorm", layer.input_norm.get(), step, !first);
  attend(layer, step);
  norm("post_attention_layernorm", layer.post_attention_norm.get(), step, true);
  mlp(layer, step);
}

void Llama::attend(const Layer& layer, const Step& step) {
  const Range self_attn = range("self_attn");
  const Heads heads = options_.heads;
  project("qkv_proj", qkv_.get(), layer.qkv.get(), normed_.get(), heads.row_size(), options_.hidden, step);
  {
    const Range rotary_emb = range("rotary_emb");
    LAUNCH(rotary_embedding_kernel, step.rows, kBlockSize, stream(), qkv_.get(), heads, span(step));
  }
  {
    const Range attn = range("attn");
    const KvCache cache{layer.keys.get(), layer.values.get(), options_.prompt + options_.steps};
    LAUNCH(reshape_and_cache_kernel, step.rows, kBlockSize, stream(), cache, qkv_.get(), heads, span(step));
    const auto attention = heads.dim == 64 ? attention_kernel<64> : attention_kernel<128>;
    LAUNCH(attention, dim3(step.rows, heads.query), kBlockSize, stream(), attention_.get(), qkv_.get(), cache, heads,
           span(step));
  }
  project("o_proj", x_.get(), layer.o.get(), attention_.get(), options_.hidden, heads.query_size(), step);
}

void Llama::mlp(const Layer& layer, const Step& step) {
  const Range mlp = range("mlp");
  const int hidden = options_.hidden, intermediate = options_.intermediate;
  project("gate_up_proj", gate_up_.get(), layer.gate_up.get(), normed_.get(), 2 * intermediate, hidden, step);
  {
    const Range act_fn = range("act_fn");
    const dim3 grid(step.rows, (intermediate + kBlockSize - 1) / kBlockSize);
    LAUNCH(silu_and_mul_kernel, grid, kBlockSize, stream(), activated_.get(), gate_up_.get(), intermediate);
  }
  project("down_proj", x_.get(), layer.down.get(), activated_.get(), hidden, intermediate, step);
}

// normed = norm(residual), after the output of the last block has been added to the residual or, at first, become it.
void Llama::norm(const char* name, const bf16* weights, const Step& step, bool add) {
  const Range layernorm = range(name);
  LAUNCH(rms_norm_kernel, step.rows, kBlockSize, stream(), normed_.get(), residual_.get(), x_.get(), weights,
         options_.hidden, add);
}

// y[rows][out] = x[rows][in] * weights[out][in]^T. To cuBLAS, which counts by columns, each of the three is its own
// transpose, so it computes y^T = weights * x^T and has to turn the weights alone.
void Llama::gemm(void* y, cudaDataType type, const bf16* weights, const bf16* x, int out, int in, int rows,
                 int x_stride) {
  const float one = 1.0f, zero = 0.0f;
  CHECK(cublasGemmEx(cublas_.get(), CUBLAS_OP_T, CUBLAS_OP_N, out, rows, in, &one, weights, CUDA_R_16BF, in, x,
                     CUDA_R_16BF, x_stride, &zero, y, type, out, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT));
}

void Llama::project(const char* name, bf16* y, const bf16* weights, const bf16* x, int out, int in, const Step& step) {
  const Range projection = range(name);
  gemm(y, CUDA_R_16BF, weights, x, out, in, step.rows, in);
}

void Llama::sample(const Step& step) {
  const Range sampler = range("Sampler");
  LAUNCH(argmax_kernel, options_.batch, kBlockSize, stream(), next_ids_.get(), output_.get(), output_size(),
         logits_.get(), options_.vocab, span(step), options_.prompt);
  LAUNCH(advance_positions_kernel, 1, 1, stream(), start_.get(), step.tokens);
}

struct Times {
  double prefill_ms = 0, decode_ms = 0;
};

Event make_event() {
  cudaEvent_t event = nullptr;
  CHECK(cudaEventCreate(&event));
  return Event(event);
}

double elapsed_ms(const Event& from, const Event& to) {
  float ms = 0;
  CHECK(cudaEventElapsedTime(&ms, from.get(), to.get()));
  return ms;
}

void run_decode_steps(Llama& model, const Options& options, cudaGraphExec_t graph) {
  for (int step = 0; step < options.steps; ++step) {
    if (step > 0 && options.sleep_ms > 0) std::this_thread::sleep_for(std::chrono::milliseconds(options.sleep_ms));
    const Range phase("phase:decode");
    if (graph) {
      CHECK(cudaGraphLaunch(graph, model.stream()));
    } else {
      model.decode();
    }
  }
}

// Runs prefill and decode `repeat` times over (graph: null in eager mode) and sums up the times.
Times run(Llama& model, const Options& options, cudaGraphExec_t graph) {
  const Event start = make_event(), prefilled = make_event(), done = make_event();
  Times times;
  for (int i = 0; i < options.repeat; ++i) {
    model.reset();
    CHECK(cudaEventRecord(start.get(), model.stream()));
    {
      const Range phase("phase:prefill");
      model.prefill();
    }
    CHECK(cudaEventRecord(prefilled.get(), model.stream()));
    run_decode_steps(model, options, graph);
    CHECK(cudaEventRecord(done.get(), model.stream()));
    CHECK(cudaEventSynchronize(done.get()));
    times.prefill_ms += elapsed_ms(start, prefilled);
    times.decode_ms += elapsed_ms(prefilled, done);
  }
  return times;
}

void print(const Options& options, const std::vector<int>& tokens, const Times& times) {
  const size_t length = tokens.size() / options.batch;
  for (int b = 0; options.print_tokens && b < options.batch; ++b) {
    std::printf("tokens[%d]:", b);
    for (size_t i = 0; i < length; ++i) std::printf(" %d", tokens[b * length + i]);
    std::printf("\n");
  }
  std::printf("mini_llm: %s, %d layers, batch %d, prompt %d, steps %d: prefill %.3f ms, decode %.3f ms/step\n",
              options.graph ? "graph" : "eager", options.layers, options.batch, options.prompt, options.steps,
              times.prefill_ms / options.repeat, times.decode_ms / options.repeat / options.steps);
}

}  // namespace

int main(int argc, char** argv) {
  const Options options = parse_options(argc, argv);
  Llama model(options);
  model.warm_up();
  const GraphExec graph = options.graph ? model.capture_decode() : nullptr;
  const Times times = run(model, options, graph.get());
  print(options, model.output(), times);
  return 0;
}
