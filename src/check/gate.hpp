// The argument checks of gates, and of hgemm_gate_gradient().
#pragma once

#include "src/base/status.hpp"
#include "src/check/arguments.hpp"
#include "src/check/request.hpp"

#include <hgemm.h>

namespace hg {

// args->gate of argument `position`, for such lines of the product.
Status check_gate(int position, const hgemm_gate_t& gate, hgemm_activation_t activation,
                  const Stored& line);

Status check_gate_gradient(const hgemm_gate_gradient_args_t& args, Pointers pointers);

}  // namespace hg
