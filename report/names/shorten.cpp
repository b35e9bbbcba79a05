#include "report/names/shorten.h"

#include <algorithm>
#include <cctype>
#include <set>
#include <string_view>
#include <unordered_map>

#include "report/format.h"

namespace lamina {
namespace {

constexpr std::string_view kEllipsis = "…";
constexpr size_t kMaxMiddles = 256;  // places of a long name at which a piece of its middle may begin

// What is left of a name: a front, perhaps a middle, an end.
using Pieces = std::vector<std::string_view>;

// A name by characters: cuts fall between them.
class Characters {
 public:
  explicit Characters(std::string_view text) : text_(text) {
    for (size_t i = 0; i < text.size(); ++i) {
      if ((static_cast<unsigned char>(text[i]) & 0xc0) != 0x80) starts_.push_back(i);
    }
    starts_.push_back(text.size());
  }

  size_t size() const { return starts_.size() - 1; }
  std::string_view part(size_t begin, size_t end) const { return text_.substr(starts_[begin], starts_[end] - starts_[begin]); }
  std::string_view front(size_t count) const { return part(0, count); }
  std::string_view end(size_t count) const { return part(size() - count, size()); }

 private:
  std::string_view text_;
  std::vector<size_t> starts_;
};

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) || static_cast<unsigned char>(c) >= 0x80; }

// Without the word that was cut, unless little else is left.
std::string_view whole_words_at_front(std::string_view piece) {
  size_t end = piece.size();
  while (end > 0 && is_word(piece[end - 1])) --end;
  return end * 2 > piece.size() ? piece.substr(0, end) : piece;
}

std::string_view whole_words_at_end(std::string_view piece) {
  size_t begin = 0;
  while (begin < piece.size() && is_word(piece[begin])) ++begin;
  return (piece.size() - begin) * 2 > piece.size() ? piece.substr(begin) : piece;
}

// Of `kernel <- parent` the end from the arrow on, if that leaves room for some of the kernel; else nothing.
std::string_view parent_of(std::string_view name, size_t limit) {
  size_t arrow = name.rfind(" <- ");
  if (arrow == name.npos || Characters(name.substr(arrow)).size() > limit * 2 / 3) return {};
  return name.substr(arrow);
}

// Ways to shorten a name, the best first: all of a parent; more of the front than of the end, then cuts further and
// further from there, between words if that leaves enough; then a piece out of the middle too.
std::vector<Pieces> ways_to_cut(const Characters& name, size_t limit) {
  std::vector<Pieces> ways;
  if (std::string_view parent = parent_of(name.front(name.size()), limit); !parent.empty()) {
    std::string_view before = name.front(limit - 1 - Characters(parent).size());
    ways.push_back({whole_words_at_front(before), parent});
    ways.push_back({before, parent});
  }
  size_t room = limit - 1;
  size_t best = room * 3 / 5;
  auto cut = [&](size_t front) {
    std::string_view before = name.front(front);
    std::string_view after = name.end(room - front);
    ways.push_back({whole_words_at_front(before), whole_words_at_end(after)});
    ways.push_back({before, after});
  };
  for (size_t step = 0; step <= room; ++step) {
    if (best + step <= room) cut(best + step);
    if (step > 0 && step <= best) cut(best - step);
  }
  size_t side = limit / 4;
  size_t width = limit - 2 - 2 * side;
  size_t last = name.size() - side - width;
  size_t stride = std::max({width / 2, last / kMaxMiddles, size_t{1}});
  for (size_t begin = side; begin <= last; begin += stride) {
    ways.push_back({name.front(side), name.part(begin, begin + width), name.end(side)});
  }
  return ways;
}

// Whether `name` could be what the pieces are left of.
bool fits(std::string_view name, const Pieces& pieces) {
  if (!name.starts_with(pieces.front())) return false;
  name.remove_prefix(pieces.front().size());
  if (!name.ends_with(pieces.back())) return false;
  name.remove_suffix(pieces.back().size());
  return pieces.size() < 3 || name.find(pieces[1]) != name.npos;
}

class Shortener {
 public:
  Shortener(std::span<const std::string> names, size_t limit) : limit_(limit) {
    for (const std::string& name : names) names_.insert(name);
    for (std::string_view name : names_) {
      if (Characters(name).size() <= limit) taken_.emplace(name);
    }
  }

  const std::string& shortened(std::string_view name) {
    auto [found, added] = chosen_.try_emplace(name);
    if (added) found->second = choose(Characters(name), name);
    return found->second;
  }

 private:
  bool tells_apart(const Pieces& pieces, std::string_view name) const {
    return std::ranges::none_of(names_, [&](std::string_view other) { return other != name && fits(other, pieces); });
  }

  // What no other name could be short for; else what no other name is shortened to; else a number.
  std::string choose(const Characters& name, std::string_view text) {
    if (name.size() <= limit_) return std::string(text);
    auto ways = ways_to_cut(name, limit_);
    std::ranges::stable_partition(ways, [&](const Pieces& pieces) { return tells_apart(pieces, text); });
    for (const Pieces& pieces : ways) {
      auto [place, added] = taken_.insert(fmt::join(pieces, kEllipsis));
      if (added) return *place;
    }
    for (size_t number = 2;; ++number) {
      std::string mark = fmt::format("#{}", number);
      std::string_view front = name.front(limit_ - std::min(limit_, mark.size() + 1));
      auto [place, added] = taken_.insert(fmt::format("{}{}{}", front, kEllipsis, mark));
      if (added) return *place;
    }
  }

  size_t limit_;
  std::set<std::string_view> names_;
  std::set<std::string> taken_;
  std::unordered_map<std::string_view, std::string> chosen_;  // equal names stay equal
};

}  // namespace

std::vector<std::string> shorten_names(std::span<const std::string> names, size_t limit) {
  Shortener shortener(names, limit);
  std::vector<std::string> result;
  for (const std::string& name : names) result.push_back(shortener.shortened(name));
  return result;
}

}  // namespace lamina
