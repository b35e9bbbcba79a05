// Which rows of two lists of siblings are the same row, changed.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "report/diff/timed_tree.h"

namespace lamina {

// Rows before and after that are one row of the comparison, by their indices: one and one, or where something was added
// or removed none and one, or several kernels in place of several.
struct Match {
  std::vector<size_t> before, after;
};

// The rule:
// 1. Rows of the same name are the same row; of a name that comes several times the first is the first, and so on.
// 2. The others may be renamed when they stand in the same place: between the same siblings of rule 1.
//    Layers there are the same when they have the same class (the name up to its parameters), or else the same child layers
//    by class, or else the same kernels somewhere inside. Several that are alike are paired in their order, and only when
//    there are as many before as after: of two that became one, neither is it.
//    Kernels there are swapped: in their order when there are as many before as after, else all of them for all.
// 3. What is left was added or removed.
// The matches are in the order of `after`, what was removed behind the row that it followed.
std::vector<Match> match_siblings(std::span<const TimedNode> before, std::span<const TimedNode> after);

}  // namespace lamina
