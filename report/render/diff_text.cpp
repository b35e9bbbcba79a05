#include <algorithm>
#include <cmath>
#include <span>

#include "report/diff/changed_layers.h"
#include "report/format.h"
#include "report/names/kernel_name.h"
#include "report/render/diff.h"
#include "report/render/text.h"

namespace lamina {
namespace {

constexpr size_t kNameWidth = 60;
constexpr size_t kLayersShown = 20;
constexpr size_t kNamesShown = 3;  // of kernels that took the place of others
constexpr std::string_view kSeparator = " | ";
constexpr std::string_view kEllipsis = "...";
constexpr std::string_view kUnknown = "-";

// A line of the table; times and percentages are texts already.
struct Row {
  std::string name;
  std::string before, after, change, percent, share, noise;
  std::string note;
};

struct Column {
  std::string_view header;
  size_t width;
  std::string Row::*cell;
};

constexpr Column kColumns[] = {{"before_us", 10, &Row::before}, {"after_us", 10, &Row::after}, {"change_us", 10, &Row::change},
                               {"change", 8, &Row::percent},    {"share", 8, &Row::share},     {"noise_us", 9, &Row::noise}};

// ---- cells

// `text` in exactly `width` characters.
void append_cell(std::string& line, std::string_view text, size_t width) {
  size_t length = characters(text);
  if (length > width) {
    line.append(first_characters(text, width - kEllipsis.size())).append(kEllipsis);
  } else {
    line.append(text).append(width - length, ' ');
  }
}

// No sign on what is shown as zero.
double shown(double number) { return std::abs(number) < 0.005 ? 0 : number; }

std::string time_text(double us) { return fmt::format("{:.2f}", shown(us)); }
std::string change_text(double us) { return shown(us) == 0 ? "0.00" : fmt::format("{:+.2f}", us); }

std::string percent_text(std::optional<double> percent) {
  if (!percent) return std::string(kUnknown);
  return shown(*percent) == 0 ? "0.00%" : fmt::format("{:+.2f}%", *percent);
}

std::string share_text(std::optional<double> percent) {
  if (!percent) return std::string(kUnknown);
  return fmt::format("{:.1f}%", std::abs(*percent) < 0.05 ? 0 : *percent);
}

std::string noise_text(const TimeChange& time) { return time.noise() ? time_text(*time.noise()) : std::string(kUnknown); }

class NameWriter {
 public:
  explicit NameWriter(bool full) : full_(full) {}

  std::string kernels(const std::vector<std::string>& names) const {
    std::string text;
    for (size_t i = 0; i < names.size() && (full_ || i < kNamesShown); ++i) text += (i == 0 ? "" : " + ") + kernel(names[i]);
    if (!full_ && names.size() > kNamesShown) text += fmt::format(" + {} more", names.size() - kNamesShown);
    return text;
  }

  std::string row(const LayerChange& row) const { return row.kernel ? kernels(row.names()) : printable(row.names().front()); }

  // Innermost first.
  std::string path(const std::vector<const LayerChange*>& path) const {
    std::string text;
    for (const LayerChange* layer : path) text += (text.empty() ? "" : " <- ") + row(*layer);
    return text;
  }

  std::string note(const LayerChange& row) const {
    switch (row.fate()) {
      case Fate::kSame: return "";
      case Fate::kRenamed: return "renamed from " + printable(row.names_before.front());
      case Fate::kSwapped: return "kernel " + kernels(row.names_before) + " -> " + kernels(row.names_after);
      default: return std::string(name_of(row.fate()));
    }
  }

 private:
  std::string kernel(const std::string& name) const { return printable(full_ ? name : short_kernel_name(name)); }

  bool full_;
};

// ---- a phase's table

class Table {
 public:
  Table(const PhaseChange& phase, const DiffTextOptions& options) : names_(options.full_names), full_(options.full_names) {
    // Of a change that may be none there are no shares.
    if (!phase.time.within_noise() && phase.time.us() != 0) whole_us_ = phase.time.us();
  }

  void add_tree(const std::vector<LayerChange>& rows, size_t depth = 0) {
    for (const LayerChange& row : rows) {
      add(depth, names_.row(row), row.time, names_.note(row));
      add_tree(row.children, depth + 1);
    }
  }

  void add_layers(const std::vector<ChangedLayer>& layers) {
    std::span all(layers);
    for (const ChangedLayer& layer : all.first(std::min(all.size(), kLayersShown))) add_layer(layer);
    if (all.size() <= kLayersShown) return;
    std::span rest = all.subspan(kLayersShown);
    add(0, fmt::format("({} more layers)", rest.size()), sum_of(rest), "");
  }

  std::string text() const {
    size_t width = kNameWidth;
    for (const Row& row : rows_) width = full_ ? std::max(width, characters(row.name)) : width;
    Row header;
    header.name = "name";
    header.note = "note";
    for (const Column& column : kColumns) header.*column.cell = column.header;
    std::string text = line(header, width);
    text.append(characters(text) - 1, '=').push_back('\n');
    for (const Row& row : rows_) text += line(row, width);
    return text;
  }

 private:
  void add_layer(const ChangedLayer& layer) {
    add(0, names_.path(layer.path), layer.time, names_.note(layer.layer()));
    for (const LayerChange* kernel : layer.kernels) add(1, names_.row(*kernel), kernel->time, names_.note(*kernel));
  }

  void add(size_t depth, const std::string& name, const TimeChange& time, std::string note) {
    std::optional<double> share;
    if (whole_us_) share = 100 * time.us() / *whole_us_;
    if (time.within_noise()) note = "within noise" + (note.empty() ? "" : "; " + note);
    std::string indent = depth > 0 ? "|" + std::string(depth, '-') + " " : "";
    rows_.push_back({indent + name, time_text(time.before.mean_us), time_text(time.after.mean_us), change_text(time.us()),
                     percent_text(time.percent()), share_text(share), noise_text(time),
                     std::move(note)});
  }

  static std::string line(const Row& row, size_t width) {
    std::string text;
    append_cell(text, row.name, width);
    for (const Column& column : kColumns) text += fmt::format("{}{:>{}}", kSeparator, row.*column.cell, column.width);
    if (!row.note.empty()) text.append(kSeparator).append(row.note);
    return text + "\n";
  }

  NameWriter names_;
  bool full_;
  std::optional<double> whole_us_;
  std::vector<Row> rows_;
};

// ---- around the tables

std::string title(const PhaseChange& phase) {
  std::string name = printable(phase.name);
  auto steps = [](uint64_t count) { return fmt::format("{} step{}", count, count == 1 ? "" : "s"); };
  if (!phase.in_both()) {
    bool before = phase.steps_before > 0;
    return fmt::format("== {}: only {}: {}, {} us a step\n", name, before ? "before" : "after",
                       steps(before ? phase.steps_before : phase.steps_after), time_text((before ? phase.time.before : phase.time.after).mean_us));
  }
  std::string counts = steps(phase.steps_before) + (phase.steps_before == phase.steps_after ? "" : " -> " + steps(phase.steps_after));
  std::string noise = !phase.time.noise()         ? "noise not known (a single step)"
                      : phase.time.within_noise() ? fmt::format("within the noise of {} us", noise_text(phase.time))
                                                  : fmt::format("noise {} us", noise_text(phase.time));
  return fmt::format("== {}: {}, GPU time of a step {} -> {} us: {} us, {}; {}\n", name, counts, time_text(phase.time.before.mean_us),
                     time_text(phase.time.after.mean_us), change_text(phase.time.us()), percent_text(phase.time.percent()), noise);
}

// Renamed layers that the list of innermost layers does not tell of.
void add_renames(std::string& text, const std::vector<LayerChange>& rows, const NameWriter& names) {
  for (const LayerChange& row : rows) {
    bool has_layers = std::ranges::any_of(row.children, [](const LayerChange& child) { return !child.kernel; });
    if (row.fate() == Fate::kRenamed && has_layers) text += names.row(row) + ": " + names.note(row) + "\n";
    add_renames(text, row.children, names);
  }
}

std::string context_text(const ReportChange& change, const DiffTextOptions& options) {
  std::string text = fmt::format("before: {}\nafter:  {}\n", printable(options.before), printable(options.after));
  auto value = [](const std::optional<std::string>& fact) { return fact ? printable(*fact) : "unknown"; };
  for (const ContextDifference& fact : change.context) {
    text += fmt::format("not the same: {}: {} -> {}\n", printable(fact.name), value(fact.before), value(fact.after));
  }
  return text;
}

}  // namespace

std::string diff_text(const ReportChange& change, const DiffTextOptions& options) {
  std::string text = context_text(change, options);
  for (const PhaseChange& phase : change.phases) {
    text += "\n" + title(phase);
    if (!phase.in_both()) continue;
    if (!options.whole_tree) add_renames(text, phase.layers, NameWriter(options.full_names));
    Table table(phase, options);
    options.whole_tree ? table.add_tree(phase.layers) : table.add_layers(changed_layers(phase));
    text += table.text();
  }
  return text;
}

}  // namespace lamina
