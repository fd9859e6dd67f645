// The gradient of a gated result in float64, and how far from it one that is computed in fp32 may be.
#pragma once

#include "hgemm.h"
#include "src/tools/support/reference.hpp"

namespace hg::test {

struct GradientOfGate {
    Estimate of_gate, of_up;
};

// From a gate, its up element, and what the gradient of D has for them. What a limit changes has a gradient
// of 0, and so has what ReLU makes 0, whatever it is multiplied by.
GradientOfGate differentiate_gate(const hgemm_gate_t& numbers, hgemm_activation_t activation, double gate,
                                  double up, double of_d);

}  // namespace hg::test
