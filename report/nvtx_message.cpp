#include "report/nvtx_message.h"

#include <algorithm>
#include <cctype>

namespace lamina {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// The value of a quoted key in a Python literal, up to the bracket that closes it; empty when it is not there.
std::string_view literal_value(std::string_view text, std::string_view key) {
  size_t at = text.find(key);
  if (at == std::string_view::npos) return {};
  size_t begin = text.find_first_not_of(": ", at + key.size());
  if (begin == std::string_view::npos) return {};
  if (text[begin] == '\'') {
    size_t end = text.find('\'', begin + 1);
    return end == std::string_view::npos ? std::string_view() : text.substr(begin + 1, end - begin - 1);
  }
  int depth = 0;
  for (size_t i = begin; i < text.size(); ++i) {
    if (text[i] == '[' || text[i] == '(' || text[i] == '{') ++depth;
    if (text[i] == ']' || text[i] == ')' || text[i] == '}') --depth;
    if (depth == 0) return text.substr(begin, i - begin + 1);
  }
  return {};
}

// {'weight': [6144, 4096]} gives weight=[6144, 4096].
std::string parameters_text(std::string_view literal) {
  std::string text;
  for (char c : literal) {
    if (c == ':') text += '=';
    if (c == '{' || c == '}' || c == '\'' || c == ':') continue;
    if (c == ' ' && !text.empty() && text.back() == '=') continue;
    text += c;
  }
  return text;
}

// The last names of an instance path, with the list they are in: layers.0 or qkv_proj.
std::string path_leaf(std::string_view path) {
  size_t dot = path.find_last_of('.');
  if (dot == std::string_view::npos) return std::string(path);
  bool number = dot + 1 < path.size() && std::all_of(path.begin() + static_cast<long>(dot) + 1, path.end(), is_digit);
  if (number && dot > 0) dot = path.find_last_of('.', dot - 1);
  return std::string(dot == std::string_view::npos ? path : path.substr(dot + 1));
}

// {'Module': 'LlamaForCausalLM.model.layers.0.mlp', 'TrainableParams': {...}, 'Inputs': [...]}
NvtxMessage parse_module(std::string_view text) {
  if (text.find("'Outputs'") != std::string_view::npos) return {NvtxMessage::Kind::kIgnored, ""};
  std::string_view path = literal_value(text, "'Module'");
  std::string parameters = parameters_text(literal_value(text, "'TrainableParams'"));
  std::string leaf = path_leaf(path);
  if (leaf.empty()) leaf = "(unnamed)";
  std::string suffix = parameters.empty() ? "" : "(" + parameters + ")";
  return {NvtxMessage::Kind::kLayer, leaf + suffix};
}

// `aten::mm, op_id = 2089, sizes = [[4, 4096], [4096, 32000]], input_op_ids = [(2087,0)]`: all but name and sizes
// changes at every call.
bool is_emit_nvtx(std::string_view text) {
  size_t comma = text.find(", ");
  if (comma == std::string_view::npos) return false;
  std::string_view rest = text.substr(comma);
  return rest.starts_with(", op_id = ") || rest.starts_with(", seq = ") || rest.starts_with(", sizes = ");
}

NvtxMessage parse_op(std::string_view text) {
  std::string_view name = text.substr(0, text.find(", "));
  if (name.starts_with("aten::")) name.remove_prefix(6);
  std::string_view sizes = literal_value(text, "sizes =");
  if (sizes.size() >= 2) sizes = sizes.substr(1, sizes.size() - 2);
  std::string op = std::string(name) + (sizes.empty() ? "" : "(" + std::string(sizes) + ")");
  return {NvtxMessage::Kind::kOp, op};
}

// `mm(bfloat16[4, 4096], bfloat16[4096, 6144])` with its namespace in front, as Lamina's own hook writes it.
bool is_op_call(std::string_view text) {
  size_t colons = text.find("::");
  size_t bracket = text.find('(');
  if (colons == std::string_view::npos || bracket == std::string_view::npos || colons > bracket) return false;
  return text.ends_with(')') && std::all_of(text.begin(), text.begin() + static_cast<long>(bracket), [](unsigned char c) {
           return std::isalnum(c) || c == '_' || c == ':' || c == '.';
         });
}

}  // namespace

NvtxMessage parse_nvtx_message(std::string_view text, std::string_view domain) {
  if (domain == "NCCL" || text.starts_with("[DG]")) return {NvtxMessage::Kind::kIgnored, ""};
  if (text.starts_with("{'Module':")) return parse_module(text);
  if (is_emit_nvtx(text)) return parse_op(text);
  if (is_op_call(text)) {
    std::string op(text.starts_with("aten::") ? text.substr(6) : text);
    return {NvtxMessage::Kind::kOp, op};
  }
  return {NvtxMessage::Kind::kLayer, text.empty() ? "(unnamed)" : std::string(text)};
}

}  // namespace lamina
