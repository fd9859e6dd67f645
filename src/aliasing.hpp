// Operands that share memory with the output.
#pragma once

#include "arguments.hpp"

namespace hg {

// Does D lie apart from A and B, from C unless it is C, and aux from D, A and B? Told exactly for a single
// product. Of a batch whose problems lie neither behind nor beside each other only the first one is looked
// at; arrays of pointers are not. All other checks were passed.
Status check_apart(const Signature& signature, const hgemm_args_t& args);

}  // namespace hg
