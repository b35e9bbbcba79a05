#include "inject/symbolizer.h"

#include <algorithm>

namespace lamina {

const ElfSymbols& Symbolizer::symbols_of(const std::string& path) {
  auto known = std::ranges::find(files_, path, [](const auto& file) -> const std::string& { return file.first; });
  if (known != files_.end()) {
    files_.splice(files_.begin(), files_, known);
  } else {
    files_.emplace_front(path, std::make_unique<ElfSymbols>(path));
    if (files_.size() > kKeptFiles) files_.pop_back();
  }
  return *files_.front().second;
}

Symbolizer::Symbol Symbolizer::find(const std::string& path, uint64_t vaddr) {
  Symbol symbol;
  uint64_t start = 0;
  symbol.function = symbols_of(path).find(vaddr, &start);
  if (auto place = lines_.find(path, vaddr)) {
    symbol.file = place->file;
    symbol.line = static_cast<uint32_t>(place->line);
  }
  return symbol;
}

}  // namespace lamina
