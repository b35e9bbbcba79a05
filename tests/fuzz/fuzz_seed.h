// A small profile with every kind of record, to begin with.
#pragma once

#include <string>

namespace lamina {

std::string seed_profile();
// The same as read_as_records() takes it.
std::string seed_records();

}  // namespace lamina
