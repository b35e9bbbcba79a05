// The text of a call's range, as Python would print the call.
#pragma once

#include <bitset>
#include <cstdint>
#include <string>

#include "nvtx_hooks/text/call_key.h"

namespace lamina {

// Which words of a key are values for which `*` stands.
using Wildcards = std::bitset<CallKey::kMaxWords>;

constexpr size_t kMaxTextBytes = 1024;

// `name(argument, …)`, and ` <- origin` if that is known.
std::string call_text(const CallKey& key, const Wildcards& wildcards = {});

// The name of a tensor's dtype or of a device's type. Defined by who makes the keys: only there it is known what the detail
// of such a token means.
std::string detail_name(Token token);

}  // namespace lamina
