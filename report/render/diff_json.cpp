#include <nlohmann/json.hpp>

#include "report/render/diff.h"

namespace lamina {
namespace {

using nlohmann::ordered_json;

template <typename Value>
ordered_json or_null(const std::optional<Value>& value) {
  return value ? ordered_json(*value) : ordered_json(nullptr);
}

void add_times(ordered_json& into, const TimeChange& time) {
  std::optional<double> noise = time.noise();
  into["before_us"] = time.before.mean_us;
  into["after_us"] = time.after.mean_us;
  into["change_us"] = time.us();
  into["change_pct"] = or_null(time.percent());
  into["noise_us"] = or_null(noise);
  into["within_noise"] = noise ? ordered_json(time.within_noise()) : ordered_json(nullptr);
}

// `whole_us`: the change of the phase.
ordered_json rows_json(const std::vector<LayerChange>& rows, double whole_us) {
  ordered_json list = ordered_json::array();
  for (const LayerChange& row : rows) {
    ordered_json json = {{"kind", row.kernel ? "kernel" : "layer"},
                         {"change", name_of(row.fate())},
                         {"names_before", row.names_before},
                         {"names_after", row.names_after}};
    add_times(json, row.time);
    json["share_pct"] = whole_us == 0 ? 0 : 100 * row.time.us() / whole_us;
    json["children"] = rows_json(row.children, whole_us);
    list.push_back(std::move(json));
  }
  return list;
}

}  // namespace

ordered_json diff_json(const ReportChange& change, const std::string& before, const std::string& after) {
  ordered_json json = {{"before", before}, {"after", after}, {"context", ordered_json::array()}, {"phases", ordered_json::array()}};
  for (const ContextDifference& fact : change.context) {
    json["context"].push_back({{"name", fact.name}, {"before", or_null(fact.before)}, {"after", or_null(fact.after)}});
  }
  for (const PhaseChange& phase : change.phases) {
    ordered_json entry = {{"name", phase.name}, {"steps_before", phase.steps_before}, {"steps_after", phase.steps_after}};
    add_times(entry, phase.time);
    entry["layers"] = rows_json(phase.layers, phase.time.us());
    json["phases"].push_back(std::move(entry));
  }
  return json;
}

}  // namespace lamina
