// Operands that share memory with the output.
#pragma once

#include "src/base/status.hpp"
#include "src/check/request.hpp"

namespace hg {

// Refuses a D that overlaps A, B or the bias, or C unless D is C, and an aux that overlaps any of these.
// Exact for a single problem. Of a batch whose problems together form no matrix, only the first is checked;
// arrays of pointers are not. All other checks must have passed.
Status check_apart(const Signature& signature, const hgemm_args_t& args);

}  // namespace hg
