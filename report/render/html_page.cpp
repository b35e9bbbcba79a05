#include "report/render/html_page.h"

#include <nlohmann/json.hpp>
#include <string_view>

#include "report/render/page_source.h"  // made from page/ by CMake

namespace lamina {
namespace {

constexpr std::string_view kDataElement = "<script type=\"application/json\" id=\"data\">";

}  // namespace

std::string script_json(const nlohmann::ordered_json& data) {
  std::string json = data.dump(-1, ' ', true, nlohmann::ordered_json::error_handler_t::replace);
  std::string text;
  text.reserve(json.size());
  // Only strings hold a `<`: without one there is no `</script` and no `<!--`.
  for (char c : json) c == '<' ? text += "\\u003c" : text += c;
  return text;
}

std::string html_page(const Page& page, const PageLimits& limits) {
  static_assert(kPageSource.find(kDataElement) != std::string_view::npos);
  size_t data_begin = kPageSource.find(kDataElement) + kDataElement.size();
  std::string html(kPageSource.substr(0, data_begin));
  html += script_json(page_data(page, limits));
  html += kPageSource.substr(data_begin);
  return html;
}

}  // namespace lamina
