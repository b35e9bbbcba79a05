// Timeline events as JSON in the Trace Event Format (the document of that name by the Chromium project), which
// ui.perfetto.dev and chrome://tracing open. Written event by event; nothing is kept but the colours given so far.
#pragma once

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <unordered_map>

#include "report/render/timeline_events.h"

namespace lamina {

class TraceJson {
 public:
  // `write` takes the text, piece by piece. `about` stands in the file as `otherData`.
  TraceJson(std::function<void(std::string_view)> write, const nlohmann::ordered_json& about);

  TimelineEvents events();
  void finish();

 private:
  void open(std::string_view phase, Track track, uint64_t time);
  void metadata(std::string_view key, Track track, std::string_view value_key, std::string_view value);
  void label(const TimelineLabel& label);
  void args(std::span<const TimelineArg> args);
  void close();
  std::string_view colour_of(std::string_view key);

  std::function<void(std::string_view)> write_;
  std::string text_;  // that is still to be written
  uint64_t flows_ = 0;
  std::unordered_map<std::string, size_t> colours_;  // by TimelineLabel::colour_key
};

// `text` as a JSON string with its quotes; what is no UTF-8 becomes U+FFFD.
void append_json_string(std::string& into, std::string_view text);

}  // namespace lamina
