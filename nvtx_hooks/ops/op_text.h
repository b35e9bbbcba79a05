// The text of an op's range, as Python would print the call.
#pragma once

#include <bitset>
#include <cstdint>
#include <string>

#include "op_key.h"

namespace lamina {

// Which words of a key are values for which `*` stands.
using Wildcards = std::bitset<OpKey::kMaxWords>;

constexpr size_t kMaxTextBytes = 1024;

std::string op_text(const OpKey& key, const Wildcards& wildcards = {});

}  // namespace lamina
