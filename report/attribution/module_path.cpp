#include "report/attribution/module_path.h"

#include <algorithm>

namespace lamina {
namespace {

bool is_number(std::string_view name) {
  return !name.empty() && std::ranges::all_of(name, [](char c) { return c >= '0' && c <= '9'; });
}

// The root without the `#2` that tells the hook's roots of one class apart.
std::string_view root_name(std::string_view path) { return path.substr(0, path.find_first_of(".#")); }

std::string_view below_root(std::string_view path) {
  size_t dot = path.find('.');
  return dot == std::string_view::npos ? std::string_view() : path.substr(dot + 1);
}

// Whether the whole of `tail` is the end of `path`. A number says nothing without its list.
bool ends_with_names(std::string_view path, std::string_view tail) {
  if (tail.empty() || is_number(tail) || !path.ends_with(tail)) return false;
  return path.size() == tail.size() || path[path.size() - tail.size() - 1] == '.';
}

}  // namespace

std::string_view path_leaf(std::string_view path) {
  size_t dot = path.find_last_of('.');
  if (dot == std::string_view::npos) return path;
  if (is_number(path.substr(dot + 1)) && dot > 0) dot = path.find_last_of('.', dot - 1);
  return dot == std::string_view::npos ? path : path.substr(dot + 1);
}

bool same_instance(std::string_view hook, std::string_view marker) {
  std::string_view hook_below = below_root(hook);
  std::string_view marker_below = below_root(marker);
  if (hook_below == marker_below) return !hook.empty() && !marker.empty();
  if (root_name(hook) == root_name(marker)) return false;
  return ends_with_names(hook, marker) || ends_with_names(hook, marker_below) || ends_with_names(marker, hook_below);
}

}  // namespace lamina
