#include "report/names/plain_kernel_name.h"

#include <algorithm>
#include <vector>

#include "report/names/described_name.h"
#include "report/names/dtype_name.h"

namespace lamina {
namespace {

using Words = std::vector<std::string_view>;

Words split_words(std::string_view name) {
  Words words;
  while (!name.empty()) {
    size_t end = std::min(name.find('_'), name.size());
    if (end > 0) words.push_back(name.substr(0, end));
    name.remove_prefix(std::min(end + 1, name.size()));
  }
  return words;
}

bool is_number(std::string_view text) { return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos; }

// ---- kernels of matrix products: `ampere_bf16_s16816gemm_bf16_128x64_ldg8_relu_f2f_stages_64x6_tn`

// `128x64`, `tilesize128x128x64`, `t128x8x512u2` in numbers; empty for other words.
std::vector<std::string> tile_sizes(std::string_view word) {
  for (std::string_view prefix : {"tilesize", "t"}) {
    if (word.starts_with(prefix)) word.remove_prefix(prefix.size());
  }
  std::vector<std::string> sizes;
  for (;;) {
    size_t digits = std::min(word.find_first_not_of("0123456789"), word.size());
    if (digits == 0) return {};
    sizes.emplace_back(word.substr(0, digits));
    word.remove_prefix(digits);
    if (!word.starts_with('x')) break;
    word.remove_prefix(1);
  }
  bool unrolled = word.size() == 2 && word[0] == 'u';
  return sizes.size() > 1 && (word.empty() || unrolled) ? sizes : std::vector<std::string>();
}

constexpr std::string_view kEpilogues[] = {"relu", "gelu", "silu", "swiGlu", "bias", "splitK", "splitk"};

bool is_epilogue(std::string_view word) { return std::ranges::find(kEpilogues, word) != std::end(kEpilogues); }

// Which operands are transposed: `tn`, `TNT`.
bool is_layout(std::string_view word) {
  return (word.size() == 2 && word.find_first_not_of("tn") == std::string_view::npos) ||
         (word.size() == 3 &&
          (word.find_first_not_of("tn") == std::string_view::npos || word.find_first_not_of("TN") == std::string_view::npos));
}

// The letters of nvjet: input, …, output.
std::string nvjet_dtype(char letter) {
  constexpr struct {
    char letter;
    const char* name;
  } kLetters[] = {{'t', "bfloat16"}, {'h', "half"}, {'s', "float"}, {'d', "double"}, {'q', "fp8_e4m3"}, {'o', "fp4"}};
  for (const auto& known : kLetters) {
    if (known.letter == letter) return known.name;
  }
  return std::string(1, letter);
}

std::string from_to(const std::string& input, const std::string& output) { return input == output ? input : input + "->" + output; }

struct Gemm {
  DescribedName name;
  std::vector<std::string> dtypes;
  std::vector<std::string> tile;
  Words epilogues;
  std::string_view layout;

  void read(std::string_view word) {
    std::vector<std::string> sizes = tile_sizes(word);
    std::vector<std::string> types = dtypes_in_token(word);
    if (!sizes.empty() && tile.empty())
      tile = sizes;
    else if (!sizes.empty() && tile.size() == 2)
      tile.push_back(sizes[0]);  // `64x6`: the tile's third side, stages
    else if (!types.empty())
      dtypes.insert(dtypes.end(), types.begin(), types.end());
    else if (is_epilogue(word))
      epilogues.push_back(word);
    else if (is_layout(word) && layout.empty() && !(tile.empty() && dtypes.empty()))
      layout = word;
    else if ((dtypes.empty() && tile.empty()) || word.find("gemm") != std::string_view::npos)
      add_to_base(word);
  }

  void add_to_base(std::string_view word) {
    for (std::string_view noise : {"generated", "fort", "native", "wmma", "wgmma"}) {
      if (word == noise) return;
    }
    name.base += (name.base.empty() ? "" : "_") + std::string(word);
  }

  std::string text(const std::string& dtype) {
    if (tile.empty()) return "";
    std::string sides;
    for (const std::string& side : tile) sides += (sides.empty() ? "" : "x") + side;
    name.add(dtype);
    name.add(sides);
    for (std::string_view epilogue : epilogues) name.add(std::string(epilogue));
    name.add(std::string(layout));
    return name.text();
  }
};

std::string gemm_name(std::string_view name) {
  Gemm gemm;
  for (std::string_view word : split_words(name)) gemm.read(word);
  bool tf32 = std::ranges::find(gemm.dtypes, "tf32") != gemm.dtypes.end();  // computed so, whatever goes in
  return gemm.text(tf32 ? "tf32" : gemm.dtypes.empty() ? "" : gemm.dtypes[0]);
}

// cuDNN's `f16` may be either type of 16 bits.
std::string cudnn_name(std::string_view name) {
  Gemm gemm;
  for (std::string_view word : split_words(name)) gemm.read(word);
  return gemm.text("");
}

// TensorRT-LLM's generated kernels have the output first: `bmm_Bfloat16_E4m3E4m3_Fp32_t128x64x128u2_…`.
std::string output_first_name(std::string_view name) {
  Gemm gemm;
  for (std::string_view word : split_words(name)) gemm.read(word);
  return gemm.dtypes.size() < 2 ? "" : gemm.text(from_to(gemm.dtypes[1], gemm.dtypes[0]));
}

// `nvjet_sm90_tst_128x8_64x12_4x1_v_bz_splitK_TNT`
std::string nvjet_name(std::string_view name) {
  Gemm gemm;
  std::string dtype;
  Words words = split_words(name);
  for (size_t i = 0; i < words.size(); ++i) {
    bool types_follow = dtype.empty() && i > 0 && !words[i].starts_with("sm");
    if (types_follow)
      dtype = from_to(nvjet_dtype(words[i].front()), nvjet_dtype(words[i].back()));
    else
      gemm.read(words[i]);
  }
  return gemm.text(dtype);
}

// ---- others

// `triton_red_fused__to_copy_add_rms_norm_3`: the kind and the operations.
std::string inductor_name(std::string_view name) {
  constexpr std::string_view kFused = "_fused_";
  size_t fused = name.find(kFused);
  if (fused == std::string_view::npos) return "";
  std::string_view operations = name.substr(fused + kFused.size());
  if (size_t last = operations.rfind('_'); last != std::string_view::npos && is_number(operations.substr(last + 1))) {
    operations = operations.substr(0, last);
  }
  operations.remove_prefix(std::min(operations.find_first_not_of('_'), operations.size()));
  return DescribedName{std::string(name.substr(0, fused)), {std::string(operations)}}.text();
}

// `ncclDevKernel_AllReduce_Sum_bf16_RING_LL`
std::string nccl_name(std::string_view name) {
  constexpr std::string_view kKernel = "Kernel_";
  size_t kernel = name.find(kKernel);
  if (kernel == std::string_view::npos) return "";
  Words words = split_words(name.substr(kernel + kKernel.size()));
  if (words.empty()) return "";
  DescribedName result{"nccl_" + std::string(words[0])};
  for (std::string_view word : Words(words.begin() + 1, words.end())) {
    std::vector<std::string> types = dtypes_in_token(word);
    result.add(types.empty() ? std::string(word) : types[0]);
  }
  return result.text();
}

// CuTe's Python kernels: `kernel_cutlass_kernel_flashinfernormkernelsrmsnormRMSNormKernel_object_at__tensorptrbf16gmem…`
std::string cute_name(std::string_view name) {
  for (std::string_view prefix : {"kernel_cutlass_", "kernel_"}) {
    if (name.starts_with(prefix)) name.remove_prefix(prefix.size());
  }
  name = name.substr(0, std::min(name.find("_object_at"), name.find("_tensor")));
  return std::string(without_kernel(name));
}

// `fmhaSm100fKernel_QkvBfloat16OBfloat16H128PagedKvCausalP64…`
std::string fmha_name(std::string_view name) {
  constexpr std::string_view kKernel = "Kernel_";
  size_t kernel = name.find(kKernel);
  if (kernel == std::string_view::npos) return "";
  return DescribedName{std::string(name.substr(0, kernel)), {std::string(name.substr(kernel + kKernel.size()))}}.text();
}

constexpr struct Family {
  std::string_view prefix;
  std::string (*shorten)(std::string_view name);
} kFamilies[] = {{"nvjet_", nvjet_name},         {"sm", gemm_name},          {"ampere_", gemm_name},
                 {"volta_", gemm_name},          {"turing_", gemm_name},     {"maxwell_", gemm_name},
                 {"cutlass", gemm_name},         {"cudnn_", cudnn_name},     {"bmm_", output_first_name},
                 {"gemm_", output_first_name},   {"triton_", inductor_name}, {"nccl", nccl_name},
                 {"kernel_cutlass_", cute_name}, {"fmha_", gemm_name},       {"fmha", fmha_name}};

}  // namespace

std::string short_plain_name(std::string_view name) {
  for (const Family& family : kFamilies) {
    if (name.starts_with(family.prefix)) return family.shorten(name);
  }
  return "";
}

}  // namespace lamina
