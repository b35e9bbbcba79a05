#include "report/load/layerwise_json.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string_view>
#include <unordered_map>

#include "report/errors.h"
#include "report/format.h"
#include "report/load/json_text.h"
#include "report/tree/step_name.h"
#include "report/tree/summarize.h"

namespace lamina {
namespace {

using nlohmann::ordered_json;

constexpr double kMaxNumber = 1e15;  // microseconds: 31 years
constexpr size_t kMaxKeyInMessage = 80;

// ---- where a value stands

// Points to the place of its container: only an error makes text of it.
class Place {
 public:
  explicit Place(const std::string& file_name) : file_name_(file_name) {}

  Place key(std::string_view name) const { return {file_name_, this, name, 0}; }
  Place item(size_t index) const { return {file_name_, this, {}, index}; }

  [[noreturn]] void fail(const std::string& what) const {
    throw InputError(fmt::format("{}: {} {}", file_name_, container_ ? text() : "the document", what));
  }

 private:
  Place(const std::string& file_name, const Place* container, std::string_view name, size_t index)
      : file_name_(file_name), container_(container), name_(name), index_(index) {}

  std::string text() const {
    if (!container_) return "";
    std::string before = container_->text();
    if (!name_.data()) return fmt::format("{}[{}]", before, index_);
    return fmt::format("{}{}{}", before, before.empty() ? "" : ".", name_.substr(0, kMaxKeyInMessage));
  }

  const std::string& file_name_;
  const Place* container_ = nullptr;
  std::string_view name_;  // no data: an item of an array
  size_t index_ = 0;
};

// ---- values of the expected type

const ordered_json& object_at(const ordered_json& value, const Place& place) {
  if (!value.is_object()) place.fail("is not an object");
  return value;
}

const ordered_json& member(const ordered_json& object, std::string_view key, const Place& place) {
  auto found = object.find(key);
  if (found == object.end()) place.key(key).fail("is missing");
  return *found;
}

std::string text_member(const ordered_json& object, std::string_view key, const Place& place) {
  const ordered_json& value = member(object, key, place);
  if (!value.is_string()) place.key(key).fail("is not a string");
  return value.get<std::string>();
}

double number_member(const ordered_json& object, std::string_view key, const Place& place) {
  const ordered_json& value = member(object, key, place);
  if (!value.is_number()) place.key(key).fail("is not a number");
  auto number = value.get<double>();
  if (!(number >= 0 && number <= kMaxNumber)) place.key(key).fail(fmt::format("is out of range: {}", number));
  return number;
}

void read_entry(SummaryNode& node, const ordered_json& entry, const Place& place) {
  node.name = text_member(entry, "name", place);
  node.cuda_time_us = number_member(entry, "cuda_time_us", place);
  node.pct_cuda_time = number_member(entry, "pct_cuda_time", place);
  node.invocations = number_member(entry, "invocations", place);
}

void read_entry(ModelNode& node, const ordered_json& entry, const Place& place) {
  node.name = text_member(entry, "name", place);
  node.cpu_time_us = number_member(entry, "cpu_time_us", place);
  node.cuda_time_us = number_member(entry, "cuda_time_us", place);
  node.pct_cuda_time = number_member(entry, "pct_cuda_time", place);
  node.trace = text_member(entry, "trace", place);
}

// What Lamina adds beside `entry`; others have nothing there.
void read_additions(SummaryNode&, const ordered_json&, const Place&) {}

void read_additions(ModelNode& node, const ordered_json& json, const Place& place) {
  auto additions = json.find("lamina");
  if (additions == json.end()) return;
  Place here = place.key("lamina");
  if (object_at(*additions, here).contains("path")) node.path = text_member(*additions, "path", here);
}

// Recursive: parse_json bounds the depth.
template <typename Node>
std::vector<Node> read_nodes(const ordered_json& list, const Place& place) {
  if (!list.is_array()) place.fail("is not an array");
  std::vector<Node> nodes(list.size());
  for (size_t i = 0; i < nodes.size(); ++i) {
    Place here = place.item(i);
    const ordered_json& node = object_at(list[i], here);
    Place entry_place = here.key("entry");
    read_entry(nodes[i], object_at(member(node, "entry", here), entry_place), entry_place);
    read_additions(nodes[i], node, here);
    nodes[i].children = read_nodes<Node>(member(node, "children", here), here.key("children"));
  }
  return nodes;
}

bool is_same(const SummaryNode& a, const SummaryNode& b) {
  return a.name == b.name && a.cuda_time_us == b.cuda_time_us && a.invocations == b.invocations &&
         std::ranges::equal(a.children, b.children, is_same);
}

// vLLM's writer gives a root as often as modules of its name were called, each time with the sum of all these calls.
void drop_repeated_roots(std::vector<SummaryNode>& roots) {
  std::unordered_map<std::string, size_t> first;
  std::vector<SummaryNode> kept;
  for (SummaryNode& root : roots) {
    auto [known, added] = first.try_emplace(root.name, kept.size());
    if (added || !is_same(root, kept[known->second])) kept.push_back(std::move(root));
  }
  roots = std::move(kept);
}

StepReport read_step(const ordered_json& json, const Place& place) {
  object_at(json, place);
  StepReport step;
  if (auto metadata = json.find("metadata"); metadata != json.end()) {
    *step.metadata = object_at(*metadata, place.key("metadata"));  // older files have none
  }
  step.summary = read_nodes<SummaryNode>(member(json, "summary_stats", place), place.key("summary_stats"));
  drop_repeated_roots(step.summary);
  step.model = read_nodes<ModelNode>(member(json, "model_stats", place), place.key("model_stats"));
  return step;
}

// ---- phases

// The phases of a document, steps being found in any order.
class Phases {
 public:
  // `key` of the document names a phase or a step.
  void add(std::string_view key, const ordered_json& json, const Place& place) {
    if (key.empty()) place.fail("is a phase without a name");
    add(split_step_name(key).value_or(StepName{key, 1}), json, place);
  }

  void add(StepName step_name, const ordered_json& json, const Place& place) {
    auto [name, number] = step_name;
    StepReport step = read_step(json, place);
    step.number = number;
    auto [found, added] = index_.try_emplace(std::string(name), phases_.size());
    if (added) phases_.push_back({.name = std::string(name)});
    phases_[found->second].steps.push_back(std::move(step));
  }

  void add_all(const ordered_json& object, const Place& place) {
    for (const auto& [key, json] : object_at(object, place).items()) add(key, json, place.key(key));
  }

  std::vector<PhaseReport> finish(const Place& place) {
    for (PhaseReport& phase : phases_) finish_phase(phase, place);
    return std::move(phases_);
  }

 private:
  static void finish_phase(PhaseReport& phase, const Place& place) {
    std::ranges::stable_sort(phase.steps, {}, &StepReport::number);
    auto twice = std::ranges::adjacent_find(phase.steps, {}, &StepReport::number);
    if (twice != phase.steps.end())
      place.fail(fmt::format("has step {} of phase '{}' twice", twice->number, phase.name));
    phase.step_count = phase.steps.size();
    if (phase.step_count == 1) {
      phase.summary = phase.steps[0].summary;  // as it is, percentages too
      return;
    }
    for (const StepReport& step : phase.steps) add_summary(phase.summary, step.summary);
    set_percentages(phase.summary);
  }

  std::vector<PhaseReport> phases_;
  std::unordered_map<std::string, size_t> index_;
};

// The phases that are named in `order` come first, in its order.
void sort_phases(std::vector<PhaseReport>& phases, const ordered_json& order, const Place& place) {
  if (!order.is_array()) place.fail("is not an array");
  std::unordered_map<std::string, size_t> ranks;
  for (size_t i = 0; i < order.size(); ++i) {
    if (!order[i].is_string()) place.item(i).fail("is not a string");
    ranks.try_emplace(order[i].get<std::string>(), i);
  }
  std::ranges::stable_sort(phases, {}, [&](const PhaseReport& phase) {
    auto rank = ranks.find(phase.name);
    return rank == ranks.end() ? ranks.size() + order.size() : rank->second;
  });
}

// Takes the phases that Lamina keeps in `context.lamina` out of the context.
ordered_json take_lamina_phases(ordered_json& context, const Place& place) {
  ordered_json taken = ordered_json::object();
  auto lamina = context.find("lamina");
  if (lamina == context.end()) return taken;
  object_at(*lamina, place.key("lamina"));
  for (const char* key : {"phases", "prefill_steps", "phase_order"}) {
    if (auto found = lamina->find(key); found != lamina->end()) {
      taken[key] = std::move(*found);
      lamina->erase(found);
    }
  }
  if (lamina->empty()) context.erase(lamina);
  return taken;
}

}  // namespace

LayerReport read_layerwise_json(const std::string& text, const std::string& file_name) {
  ordered_json document = parse_json(text, file_name);
  Place root(file_name);
  object_at(document, root);
  LayerReport report;
  Place context_place = root.key("context");
  *report.context = object_at(member(document, "context", root), context_place);
  ordered_json taken = take_lamina_phases(*report.context, context_place);
  Place lamina_place = context_place.key("lamina");
  bool has_prefill_steps = taken.contains("prefill_steps");  // then `prefill` is their sum

  // An older writer calls the first decode step `decode` and the second `decode_1`.
  bool first_is_bare = document.contains("decode") && document.contains("decode_1");

  Phases phases;
  if (has_prefill_steps) phases.add_all(taken["prefill_steps"], lamina_place.key("prefill_steps"));
  for (const auto& [key, json] : document.items()) {
    if (key == "context" || (key == kPrefill && has_prefill_steps)) continue;
    auto step = split_step_name(key);
    if (first_is_bare && step && step->phase == kDecode) {
      phases.add(StepName{kDecode, step->number + 1}, json, root.key(key));
    } else {
      phases.add(key, json, root.key(key));
    }
  }
  if (taken.contains("phases")) phases.add_all(taken["phases"], lamina_place.key("phases"));
  report.phases = phases.finish(root);
  if (taken.contains("phase_order")) sort_phases(report.phases, taken["phase_order"], lamina_place.key("phase_order"));
  return report;
}

}  // namespace lamina
