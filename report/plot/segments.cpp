#include "report/plot/segments.h"

#include <algorithm>
#include <map>

#include "report/names/class_of.h"
#include "report/names/kernel_name.h"
#include "report/render/text.h"

namespace lamina {
namespace {

bool is_sampler(const SummaryNode& node) {
  std::string_view name = class_of(node.name);
  return name == "Sampler" || name == "LogitsProcessor";
}

class Collector {
 public:
  Collector(const ChartOptions& options, std::set<std::string>& found) : options_(options), found_(found) {}

  // Recursive: the depth of a report is bounded.
  void visit(const SummaryNode& node) {
    if (options_.ignore_sampler && is_sampler(node)) return;
    bool is_kernel = node.children.empty();
    path_.push_back(shown_name(is_kernel ? short_kernel_name(node.name) : node.name));
    if (is_folded(node) || is_kernel) {
      add(node.cuda_time_us);
    } else if (options_.level == PlotLevel::kKernel) {
      visit_all(node.children);
    } else {
      visit_module(node);
    }
    path_.pop_back();
  }

  void visit_all(const std::vector<SummaryNode>& nodes) {
    for (const SummaryNode& node : nodes) visit(node);
  }

  std::vector<LayerSegment> take() { return std::move(segments_); }

 private:
  void visit_module(const SummaryNode& module) {
    double own_us = 0;
    for (const SummaryNode& child : module.children) {
      if (child.children.empty()) own_us += child.cuda_time_us;
    }
    add(own_us);
    for (const SummaryNode& child : module.children) {
      if (!child.children.empty()) visit(child);
    }
  }

  bool is_folded(const SummaryNode& node) {
    for (const std::string& name : {node.name, std::string(class_of(node.name))}) {
      if (!options_.folds.contains(name)) continue;
      found_.insert(name);
      return true;
    }
    return false;
  }

  void add(double us) {
    if (us > 0) segments_.push_back({{path_.rbegin(), path_.rend()}, us});
  }

  const ChartOptions& options_;
  std::set<std::string>& found_;
  std::vector<std::string> path_;
  std::vector<LayerSegment> segments_;
};

std::string first_names(const std::vector<std::string>& path, size_t count) {
  std::string text = path[0];
  for (size_t i = 1; i < count; ++i) text += " <- " + path[i];
  return text;
}

}  // namespace

std::string shown_name(const std::string& name) { return name.empty() ? "(no name)" : printable(name); }

std::vector<LayerSegment> layer_segments(const std::vector<SummaryNode>& roots, const ChartOptions& options, std::set<std::string>& found) {
  Collector collector(options, found);
  collector.visit_all(roots);
  return collector.take();
}

std::vector<std::string> unique_names(const std::vector<std::vector<std::string>>& paths) {
  std::vector<std::string> names;
  std::vector<size_t> counts(paths.size(), 1);
  std::map<std::string, std::vector<size_t>> rest;  // by name: the paths that are not settled
  for (size_t i = 0; i < paths.size(); ++i) {
    names.push_back(paths[i][0]);
    rest[names[i]].push_back(i);
  }
  while (!rest.empty()) {
    std::map<std::string, std::vector<size_t>> longer;
    for (const auto& [name, same] : rest) {
      for (size_t i : same) {
        if (same.size() == 1 || counts[i] == paths[i].size()) continue;
        names[i] = first_names(paths[i], ++counts[i]);
        longer[names[i]].push_back(i);
      }
    }
    rest = std::move(longer);
  }
  return names;
}

}  // namespace lamina
