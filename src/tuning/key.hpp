// The names of problems in tuning files.
#pragma once

#include "src/plan/backend.hpp"

#include <string>

namespace hg {

// A problem as tuning files and the log name it, in one word: sizes, types, how operands lie and are
// aligned, the epilogue. A pure function of what plans depend on, but coarser: of strides it has the
// alignment. Whoever adds to Problem what a kernel's legality or speed depends on, adds it here.
std::string tuning_key(const Problem& problem, Mode mode);

}  // namespace hg
