// From checked arguments to a Problem.
#pragma once

#include "hgemm.h"
#include "src/plan/problem.hpp"

#include <cstdint>

namespace hg {

// The canonical form of checked, non-empty arguments.
Problem to_problem(const hgemm_args_t& args);

// Of gates: those of checked arguments.
Gate to_gate(const hgemm_gate_t& gate);

}  // namespace hg
