#include "report/render/page_data.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "report/names/kernel_name.h"
#include "report/names/palette.h"
#include "report/render/page_rows.h"
#include "report/tree/summarize.h"

namespace lamina {
namespace {

using nlohmann::ordered_json;

constexpr int kNone = -1;
constexpr double kMaxWhole = 9e15;  // whole numbers up to here are exact, here and in JavaScript

ordered_json whole(double number) {
  if (!std::isfinite(number)) return 0;
  return std::abs(number) < kMaxWhole ? ordered_json(std::llround(number)) : ordered_json(number);
}

ordered_json nanoseconds(double us) { return whole(us * 1000); }

ordered_json count(double number) {
  bool is_whole = std::isfinite(number) && number == std::floor(number);
  return is_whole || !std::isfinite(number) ? whole(number) : ordered_json(number);
}

int rgb(Colour colour) { return colour.red << 16 | colour.green << 8 | colour.blue; }

// ---- names, and what the page needs to know about them

class Strings {
 public:
  explicit Strings(const KernelGroups& groups) : groups_(groups) {}

  int text(std::string_view text) {
    auto [found, added] = ids_.try_emplace(std::string(text), static_cast<int>(strings_.size()));
    if (added) strings_.push_back({std::string(text)});
    return found->second;
  }

  // The name of a row. One name may be that of a layer and of a kernel.
  int row(std::string_view name, bool layer) {
    int id = text(name);
    if (layer && strings_[id].colour == kNone) strings_[id].colour = rgb(colour_of(name));
    if (!layer && strings_[id].group == kNone) {
      strings_[id].group = group(groups_.group_of(name));
      std::string short_name = short_kernel_name(name);
      strings_[id].short_name = text(short_name);
    }
    return id;
  }

  void write(ordered_json& data) const {
    for (const char* column : {"strings", "short", "group", "colour", "groups"}) data[column] = ordered_json::array();
    for (const String& string : strings_) {
      data["strings"].push_back(string.text);
      data["short"].push_back(string.short_name);
      data["group"].push_back(string.group);
      data["colour"].push_back(string.colour);
    }
    std::vector<Colour> colours = group_colours();
    for (size_t i = 0; i < colours.size(); ++i) data["groups"].push_back({{"name", group_names_[i]}, {"colour", rgb(colours[i])}});
  }

 private:
  struct String {
    std::string text;
    int short_name = kNone;
    int group = kNone;
    int colour = kNone;
  };

  int group(std::string_view name) {
    auto found = std::ranges::find(group_names_, name);
    if (found == group_names_.end()) found = group_names_.emplace(found, name);
    return static_cast<int>(found - group_names_.begin());
  }

  // Each its own as in every figure; those of which another group has taken that, one that is free.
  std::vector<Colour> group_colours() const {
    std::vector<Colour> free(all_colours().begin(), all_colours().end()), colours(group_names_.size());
    std::vector<size_t> without;
    for (size_t i = 0; i < colours.size(); ++i) {
      colours[i] = colour_of(group_names_[i]);
      if (std::erase(free, colours[i]) == 0) without.push_back(i);
    }
    for (size_t i = 0; i < std::min(without.size(), free.size()); ++i) colours[without[i]] = free[i];
    return colours;
  }

  const KernelGroups& groups_;
  std::vector<String> strings_;
  std::unordered_map<std::string, int> ids_;
  std::vector<std::string> group_names_;
};

// ---- summaries

// One summary of a phase: that of a step, or the sum of them, of one rank.
struct View {
  size_t rank;
  const PhaseReport* phase;
  const StepReport* step;  // none: the sum

  const std::vector<SummaryNode>& summary() const { return step ? step->summary : phase->summary; }
};

double total_us(const auto& roots) {
  double total = 0;
  for (const auto& root : roots) total += root.cuda_time_us;
  return total;
}

// Of a phase the sum of its steps, where all of them know.
std::optional<GpuTime> gpu_time(const View& view) {
  if (view.step) return view.step->gpu;
  if (view.phase->steps.empty() || view.phase->steps.size() != view.phase->step_count) return std::nullopt;
  GpuTime sum;
  for (const StepReport& step : view.phase->steps) {
    if (!step.gpu) return std::nullopt;
    sum.span_us += step.gpu->span_us;
    sum.busy_us += step.gpu->busy_us;
    sum.communication_us += step.gpu->communication_us;
    sum.exposed_communication_us += step.gpu->exposed_communication_us;
  }
  return sum;
}

ordered_json describe(const View& view) {
  ordered_json json = {{"rank", view.rank}, {"step", view.step ? view.step->number : 0}, {"total", nanoseconds(total_us(view.summary()))}};
  if (view.step && view.step->metadata->contains("num_running_seqs") && (*view.step->metadata)["num_running_seqs"].is_number()) {
    json["sequences"] = (*view.step->metadata)["num_running_seqs"];
  }
  if (auto gpu = gpu_time(view)) {
    json["gpu"] = {nanoseconds(gpu->span_us), nanoseconds(gpu->busy_us), nanoseconds(gpu->communication_us),
                   nanoseconds(gpu->exposed_communication_us)};
  }
  return json;
}

// A phase of one step is its own sum.
std::vector<View> views_of(size_t rank, const PhaseReport& phase) {
  std::vector<View> views = {{rank, &phase, nullptr}};
  if (phase.step_count < 2) return views;
  for (const StepReport& step : phase.steps) views.push_back({rank, &phase, &step});
  return views;
}

// Those of `rows` that are kept, in their order. What weighs is the sum of all ranks and steps.
std::vector<uint32_t> heaviest_rows(const SummaryRows& tree, const std::vector<uint32_t>& rows, size_t limit) {
  std::vector<Weight> weights;
  for (uint32_t row : rows) weights.push_back({tree.rows()[row].depth, tree.cell(0, row).time_us});
  std::vector<bool> chosen = choose_heaviest(weights, limit);
  std::vector<uint32_t> kept;
  for (size_t i = 0; i < rows.size(); ++i) {
    if (chosen[i]) kept.push_back(rows[i]);
  }
  return kept;
}

// The places of the rows of `some` in `all`, both in the same order.
std::vector<size_t> places(const std::vector<uint32_t>& some, const std::vector<uint32_t>& all) {
  std::vector<size_t> result;
  for (size_t i = 0; i < all.size() && result.size() < some.size(); ++i) {
    if (all[i] == some[result.size()]) result.push_back(i);
  }
  return result;
}

void write_cells(ordered_json& view, const SummaryRows& tree, size_t column, const std::vector<uint32_t>& rows) {
  ordered_json time = ordered_json::array(), calls = ordered_json::array(), idle = ordered_json::array();
  bool any_idle = false;
  for (uint32_t row : rows) {
    SummaryCell cell = tree.cell(column, row);
    time.push_back(nanoseconds(cell.time_us));
    calls.push_back(count(cell.calls));
    idle.push_back(nanoseconds(cell.idle_us));
    any_idle |= cell.idle_us > 0;
  }
  view["time"] = std::move(time);
  view["calls"] = std::move(calls);
  if (any_idle) view["idle"] = std::move(idle);
}

void write_summary(ordered_json& json, const std::vector<View>& views, Strings& strings, const PageLimits& limits) {
  SummaryRows tree;
  for (const View& view : views) tree.add(view.summary());
  std::vector<uint32_t> rows = heaviest_rows(tree, tree.order(), limits.summary_rows);
  size_t steps = static_cast<size_t>(std::ranges::count_if(views, [](const View& view) { return view.step != nullptr; }));
  std::vector<uint32_t> step_rows = steps > 0 ? heaviest_rows(tree, rows, limits.step_cells / steps) : rows;
  if (step_rows.size() < rows.size()) json["step_rows"] = places(step_rows, rows);
  json["all"] = tree.rows().size();
  for (const char* column : {"depth", "string", "layer"}) json[column] = ordered_json::array();
  for (uint32_t id : rows) {
    const SummaryRows::Row& row = tree.rows()[id];
    json["depth"].push_back(row.depth);
    json["string"].push_back(strings.row(row.name, row.layer));
    json["layer"].push_back(row.layer ? 1 : 0);
  }
  json["views"] = ordered_json::array();
  for (size_t column = 0; column < views.size(); ++column) {
    json["views"].push_back(describe(views[column]));
    write_cells(json["views"].back(), tree, column, views[column].step ? step_rows : rows);
  }
}

// ---- model trees

struct ModelTree {
  size_t phase;  // of the page
  size_t rank;
  const StepReport* step;
  std::vector<ModelRow> rows;
};

ordered_json write_model(const ModelTree& tree, size_t limit, Strings& strings) {
  ordered_json json = {{"rank", tree.rank}, {"step", tree.step->number}, {"all", tree.rows.size()}};
  json["total"] = nanoseconds(total_us(tree.step->model));
  for (const char* column : {"depth", "string", "layer", "time", "cpu", "trace", "path"}) json[column] = ordered_json::array();
  std::vector<Weight> weights;
  for (const ModelRow& row : tree.rows) weights.push_back({row.depth, row.node->cuda_time_us});
  std::vector<bool> chosen = choose_heaviest(weights, limit);
  for (size_t i = 0; i < tree.rows.size(); ++i) {
    if (!chosen[i]) continue;
    const ModelNode& node = *tree.rows[i].node;
    bool layer = !is_activity(node);
    json["depth"].push_back(tree.rows[i].depth);
    json["string"].push_back(strings.row(node.name, layer));
    json["layer"].push_back(layer ? 1 : 0);
    json["time"].push_back(nanoseconds(node.cuda_time_us));
    json["cpu"].push_back(nanoseconds(node.cpu_time_us));
    json["trace"].push_back(node.trace.empty() ? kNone : strings.text(node.trace));
    json["path"].push_back(node.path.empty() ? kNone : strings.text(node.path));
  }
  return json;
}

void write_models(ordered_json& phases, const std::vector<ModelTree>& trees, Strings& strings, const PageLimits& limits) {
  std::vector<size_t> sizes;
  for (const ModelTree& tree : trees) sizes.push_back(tree.rows.size());
  std::vector<size_t> shares = share_out(sizes, limits.model_rows);
  for (size_t i = 0; i < trees.size(); ++i) phases[trees[i].phase]["models"].push_back(write_model(trees[i], shares[i], strings));
}

// ---- the whole

// The phases of all ranks, as the first has them and then what only others have.
struct Phases {
  std::vector<std::string> names;
  std::map<std::string, std::vector<View>> views;
  std::vector<ModelTree> models;

  explicit Phases(const Page& page) {
    for (size_t rank = 0; rank < page.ranks.size(); ++rank) {
      for (const PhaseReport& phase : page.ranks[rank].report.phases) add(rank, phase);
    }
  }

 private:
  void add(size_t rank, const PhaseReport& phase) {
    auto [found, added] = views.try_emplace(phase.name);
    if (added) names.push_back(phase.name);
    std::vector<View> more = views_of(rank, phase);
    found->second.insert(found->second.end(), more.begin(), more.end());
    if (phase.steps.empty() || phase.steps[0].model.empty()) return;
    size_t number = static_cast<size_t>(std::ranges::find(names, phase.name) - names.begin());
    models.push_back({number, rank, &phase.steps[0], model_rows(phase.steps[0].model)});
  }
};

void add_context(ordered_json& list, const ordered_json& values, const std::string& prefix) {
  for (const auto& [key, value] : values.items()) {
    if (prefix.empty() && key == "lamina") continue;
    if (value.is_object()) {
      add_context(list, value, prefix + key + ".");
    } else if (!value.is_null()) {
      list.push_back({prefix + key, value.is_string() ? value.get<std::string>()
                                                      : value.dump(-1, ' ', false, ordered_json::error_handler_t::replace)});
    }
  }
}

ordered_json write_account(const std::vector<InfoSection>& account) {
  ordered_json json = ordered_json::array();
  for (const InfoSection& section : account) {
    ordered_json lines = ordered_json::array();
    for (const InfoLine& line : section.lines) lines.push_back({line.label, line.value, line.problem ? 1 : 0});
    json.push_back({{"title", section.title}, {"lines", std::move(lines)}});
  }
  return json;
}

}  // namespace

nlohmann::ordered_json page_data(const Page& page, const PageLimits& limits) {
  ordered_json data = {{"title", page.title}, {"version", LAMINA_VERSION}};
  Strings strings(page.groups);
  Phases phases(page);
  ordered_json written = ordered_json::array();
  for (const std::string& name : phases.names) {
    written.push_back({{"name", name}, {"models", ordered_json::array()}});
    write_summary(written.back(), phases.views[name], strings, limits);
  }
  write_models(written, phases.models, strings, limits);
  strings.write(data);
  data["ranks"] = ordered_json::array();
  for (const RankReport& rank : page.ranks) data["ranks"].push_back(rank.name);
  data["context"] = ordered_json::array();
  add_context(data["context"], *page.ranks.front().report.context, "");
  data["account"] = write_account(page.account);
  data["phases"] = std::move(written);
  return data;
}

}  // namespace lamina
