#include "report/names/demangled.h"

#include <algorithm>
#include <charconv>

namespace lamina {
namespace {

constexpr std::string_view kNoNamespaces[] = {"(anonymous namespace)", "<unnamed>"};
constexpr std::string_view kCall = "operator()";

// The place after the bracket that closes the one at `begin`; the end of the text where there is none.
size_t after_bracket(std::string_view text, size_t begin, char open, char close) {
  size_t depth = 0;
  for (size_t i = begin; i < text.size(); ++i) {
    if (text[i] == open) ++depth;
    if (text[i] == close && --depth == 0) return i + 1;
  }
  return text.size();
}

// Of `<`: parentheses inside may hold a comparison, and `->` is no bracket.
size_t after_template(std::string_view text, size_t begin) {
  size_t depth = 0;
  for (size_t i = begin; i < text.size(); ++i) {
    if (text[i] == '(')
      i = after_bracket(text, i, '(', ')') - 1;
    else if (text[i] == '<')
      ++depth;
    else if (text[i] == '>' && text[i - 1] != '-' && --depth == 0)
      return i + 1;
  }
  return text.size();
}

// The place after the brackets that may begin at `begin`, else `begin`.
size_t skip_brackets(std::string_view text, size_t begin) {
  switch (begin < text.size() ? text[begin] : '\0') {
    case '<':
      return after_template(text, begin);
    case '(':
      return after_bracket(text, begin, '(', ')');
    case '{':
      return after_bracket(text, begin, '{', '}');
    default:
      return begin;
  }
}

// How much of the front is an anonymous namespace.
size_t no_namespace(std::string_view text) {
  for (std::string_view name : kNoNamespaces) {
    if (text.starts_with(name)) return name.size();
  }
  return 0;
}

// A type ends at the last space before the parameters: `void f(int)`.
std::string_view without_return_type(std::string_view text) {
  constexpr std::string_view kVoid = "void ";
  size_t begin = 0;
  for (size_t i = 0; i < text.size();) {
    if (size_t size = no_namespace(text.substr(i))) {
      i += size;
    } else if (text[i] == '(') {
      return text.substr(begin);
    } else if (text[i] == '<' || text[i] == '{') {
      i = skip_brackets(text, i);
    } else if (text[i++] == ' ') {
      begin = i;
    }
  }
  return text.starts_with(kVoid) ? text.substr(kVoid.size()) : text;  // no parameters: the space may be within a type
}

size_t name_end(std::string_view text) {
  if (size_t size = no_namespace(text)) return size;
  if (text.starts_with('{')) return skip_brackets(text, 0);
  if (text.starts_with(kCall)) return kCall.size();
  text = text.substr(0, text.find("::"));
  return std::min(text.find_first_of("<("), text.size());
}

// Takes what stands between brackets off the front.
std::string_view take_bracketed(std::string_view& text, char open) {
  if (!text.starts_with(open)) return {};
  size_t end = skip_brackets(text, 0);
  std::string_view inside = text.substr(1, end - 1);
  if (inside.ends_with('>') || inside.ends_with(')')) inside.remove_suffix(1);
  text.remove_prefix(end);
  return inside;
}

}  // namespace

bool is_lambda(const NamePart& part) { return part.name.starts_with('{') || part.name == kCall; }

std::vector<NamePart> name_parts(std::string_view text) {
  constexpr std::string_view kScope = "::";
  constexpr std::string_view kConst = " const";
  std::vector<NamePart> parts;
  text = without_return_type(text);
  while (!text.empty()) {
    NamePart part;
    part.name = text.substr(0, name_end(text));
    text.remove_prefix(part.name.size());
    part.arguments = take_bracketed(text, '<');
    part.parameters = take_bracketed(text, '(');
    if (!part.name.empty() && no_namespace(part.name) == 0) parts.push_back(part);
    if (text.starts_with(kConst)) text.remove_prefix(kConst.size());
    if (!text.starts_with(kScope)) break;
    text.remove_prefix(kScope.size());
  }
  return parts;
}

std::vector<std::string_view> split_arguments(std::string_view text) {
  std::vector<std::string_view> arguments;
  size_t begin = 0;
  auto add = [&](size_t end) {
    std::string_view argument = text.substr(begin, end - begin);
    size_t first = argument.find_first_not_of(' ');
    if (first == std::string_view::npos) return;
    arguments.push_back(argument.substr(first, argument.find_last_not_of(' ') - first + 1));
  };
  for (size_t i = 0; i < text.size();) {
    if (text[i] == ',') {
      add(i++);
      begin = i;
    } else {
      i = std::max(skip_brackets(text, i), i + 1);
    }
  }
  add(text.size());
  return arguments;
}

long number_of(std::string_view argument) {
  if (argument.starts_with('(')) argument.remove_prefix(skip_brackets(argument, 0));
  long number = -1;
  auto [end, error] = std::from_chars(argument.data(), argument.data() + argument.size(), number);
  bool whole = std::string_view(end, argument.data() + argument.size()).find_first_not_of("ul") == std::string_view::npos;
  return error == std::errc() && whole ? number : -1;
}

}  // namespace lamina
