# Makes the HTML page's template a C++ header: cmake -D INDEX=index.html -D HEADER=page_source.h -P EmbedPage.cmake
# What index.html names in <link rel="stylesheet" href="X"> and <script src="X"></script>, each on a line of its own, takes
# the place of that line; so index.html itself is a page that a browser opens while one works on it.
cmake_minimum_required(VERSION 3.22)
get_filename_component(folder "${INDEX}" DIRECTORY)
file(READ "${INDEX}" page)

function(inline line_before name line_after open close)
  file(READ "${folder}/${name}" text)
  string(REPLACE "${line_before}${name}${line_after}" "${open}\n${text}${close}" page "${page}")
  set(page "${page}" PARENT_SCOPE)
endfunction()

string(REGEX MATCHALL "<script src=\"[a-z_]+[.]js\">" scripts "${page}")
foreach(script IN LISTS scripts)
  string(REGEX REPLACE ".*\"(.*)\".*" "\\1" name "${script}")
  inline("<script src=\"" "${name}" "\"></script>" "<script>" "</script>")
endforeach()
string(REGEX MATCHALL "href=\"[a-z_]+[.]css\"" styles "${page}")
foreach(style IN LISTS styles)
  string(REGEX REPLACE ".*\"(.*)\".*" "\\1" name "${style}")
  inline("<link rel=\"stylesheet\" href=\"" "${name}" "\">" "<style>" "</style>")
endforeach()

file(WRITE "${HEADER}" "// Made by cmake/EmbedPage.cmake from report/render/page/.
#pragma once

#include <string_view>

namespace lamina {

inline constexpr std::string_view kPageSource = R\"__page__(${page})__page__\";

}  // namespace lamina
")
