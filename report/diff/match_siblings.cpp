#include "report/diff/match_siblings.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "report/names/class_of.h"

namespace lamina {
namespace {

constexpr size_t kNone = static_cast<size_t>(-1);
using Indices = std::vector<size_t>;

// ---- what makes two layers of different names alike; an empty text is like nothing

std::string layer_class_of(const TimedNode& node) { return std::string(class_of(node.name)); }

void add_line(std::string& text, std::string_view line) { text.append(line).push_back('\n'); }

std::string child_layers_of(const TimedNode& node) {
  std::string text;
  for (const TimedNode& child : node.children) {
    if (!child.is_kernel()) add_line(text, class_of(child.name));
  }
  return text;
}

void find_kernels(const TimedNode& node, std::set<std::string_view>& names) {
  for (const TimedNode& child : node.children) {
    if (child.is_kernel()) names.insert(child.name);
    find_kernels(child, names);
  }
}

std::string kernels_of(const TimedNode& node) {
  std::set<std::string_view> names;
  find_kernels(node, names);
  std::string text;
  for (std::string_view name : names) add_line(text, name);
  return text;
}

constexpr std::string (*kLikenesses[])(const TimedNode&) = {layer_class_of, child_layers_of, kernels_of};

// ---- matching

// Between which rows of the same name something stands: their indices in `after`.
using Place = std::pair<size_t, size_t>;

struct Gap {
  Indices before, after;  // what is not matched yet
};

class Matcher {
 public:
  Matcher(std::span<const TimedNode> before, std::span<const TimedNode> after) : before_(before), after_(after) {}

  std::vector<Match> run() {
    match_names();
    find_gaps();
    for (auto& [place, gap] : gaps_) {
      for (auto likeness : kLikenesses) match_layers(gap, likeness);
      swap_kernels(gap);
      for (size_t i : gap.before) add({{i}, {}}, place.first);
      for (size_t i : gap.after) add({{}, {i}}, i);
    }
    return in_order();
  }

 private:
  void match_names() {
    std::unordered_map<std::string_view, Indices> free;  // the last first
    for (size_t i = before_.size(); i-- > 0;) free[before_[i].name].push_back(i);
    after_of_.assign(before_.size(), kNone);
    matched_.assign(after_.size(), false);
    for (size_t i = 0; i < after_.size(); ++i) {
      auto found = free.find(after_[i].name);
      if (found == free.end() || found->second.empty()) continue;
      after_of_[found->second.back()] = i;
      matched_[i] = true;
      add({{found->second.back()}, {i}}, i);
      found->second.pop_back();
    }
  }

  // `partner(i)`: the index in `after` of a row that rule 1 matched, or kNone.
  template <typename Partner>
  static std::vector<Place> places(size_t count, Partner partner) {
    std::vector<Place> places(count, {kNone, kNone});
    for (size_t i = 0, last = kNone; i < count; ++i) {
      places[i].first = last;
      if (partner(i) != kNone) last = partner(i);
    }
    for (size_t i = count, next = kNone; i-- > 0;) {
      places[i].second = next;
      if (partner(i) != kNone) next = partner(i);
    }
    return places;
  }

  void find_gaps() {
    auto places_before = places(before_.size(), [&](size_t i) { return after_of_[i]; });
    auto places_after = places(after_.size(), [&](size_t i) { return matched_[i] ? i : kNone; });
    for (size_t i = 0; i < before_.size(); ++i) {
      if (after_of_[i] == kNone) gaps_[places_before[i]].before.push_back(i);
    }
    for (size_t i = 0; i < after_.size(); ++i) {
      if (!matched_[i]) gaps_[places_after[i]].after.push_back(i);
    }
  }

  void match_layers(Gap& gap, std::string (*likeness)(const TimedNode&)) {
    if (gap.before.empty() || gap.after.empty()) return;
    std::map<std::string, Gap> alike;
    for (size_t i : gap.before) {
      if (!before_[i].is_kernel()) alike[likeness(before_[i])].before.push_back(i);
    }
    for (size_t i : gap.after) {
      if (!after_[i].is_kernel()) alike[likeness(after_[i])].after.push_back(i);
    }
    for (const auto& [text, group] : alike) {
      if (!text.empty() && group.before.size() == group.after.size()) pair(gap, group);
    }
  }

  void swap_kernels(Gap& gap) {
    Gap kernels;
    std::ranges::copy_if(gap.before, std::back_inserter(kernels.before), [&](size_t i) { return before_[i].is_kernel(); });
    std::ranges::copy_if(gap.after, std::back_inserter(kernels.after), [&](size_t i) { return after_[i].is_kernel(); });
    if (kernels.before.empty() || kernels.after.empty()) return;
    if (kernels.before.size() == kernels.after.size()) return pair(gap, kernels);
    take(gap, kernels);
    add({kernels.before, kernels.after}, kernels.after.front());
  }

  void pair(Gap& gap, const Gap& group) {
    take(gap, group);
    for (size_t i = 0; i < group.before.size(); ++i) add({{group.before[i]}, {group.after[i]}}, group.after[i]);
  }

  static void take(Gap& from, const Gap& group) {
    std::erase_if(from.before, [&](size_t i) { return std::ranges::binary_search(group.before, i); });  // indices ascend
    std::erase_if(from.after, [&](size_t i) { return std::ranges::binary_search(group.after, i); });
  }

  // `row`: the index in `after` at which the match stands, or behind which when it was removed.
  void add(Match match, size_t row) {
    size_t position = match.after.empty() ? 2 * (row + 1) : 2 * (row + 1) - 1;  // kNone + 1 is 0: before all others
    matches_.emplace_back(position, std::move(match));
  }

  std::vector<Match> in_order() {
    std::ranges::stable_sort(matches_, {}, [](const auto& entry) { return entry.first; });
    std::vector<Match> result;
    for (auto& [position, match] : matches_) result.push_back(std::move(match));
    return result;
  }

  std::span<const TimedNode> before_, after_;
  Indices after_of_;           // by index before; kNone: no row of its name
  std::vector<bool> matched_;  // by index after
  std::map<Place, Gap> gaps_;
  std::vector<std::pair<size_t, Match>> matches_;
};

}  // namespace

std::vector<Match> match_siblings(std::span<const TimedNode> before, std::span<const TimedNode> after) {
  return Matcher(before, after).run();
}

}  // namespace lamina
