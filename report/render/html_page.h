// One self-contained HTML page: no network, everything in the file. Its sources are in page/.
#pragma once

#include <string>

#include "report/render/page_data.h"

namespace lamina {

std::string html_page(const Page& page, const PageLimits& limits = {});

// JSON that may stand in a <script> element, whatever its strings hold: ASCII, and nothing that HTML reads as markup.
std::string script_json(const nlohmann::ordered_json& data);

}  // namespace lamina
