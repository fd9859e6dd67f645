// Gated results: the same checks for the host and for every GPU backend, reported to GoogleTest.
#pragma once

#include "gemm_case.hpp"
#include "library.hpp"
#include "trial.hpp"

#include <cstdint>
#include <functional>

namespace hg::test {

// Number `form` of the cases that differ in layout, operands, types, activation and what gates do. D has
// `lines` lines of `length` elements; a block of 0 is the whole length.
GemmCase gate_case(unsigned form, int64_t lines, int64_t length, int64_t k, int64_t block = 0);

// Runs and judges it; `edit` may change the trial before.
void expect_gate(Library& library, const GemmCase& g, const std::function<void(Trial&)>& edit = nullptr);

// Every block, layout, type and activation is right, and so are batches and epilogues.
void check_gates(Library& library);
// NaN, infinities and signs of zeros are as IEEE arithmetic makes them. Without `has_c` only what one
// kernel serves.
void check_gate_values(Library& library, bool has_c = true);
// In modes that promise bits, a row has those of its fp32 product gated alone, however D is cut.
void check_gate_bits(Library& library);
// A workspace of the size that is told suffices, however often it cuts D, and so does a larger one.
void check_gate_workspaces(Library& library);
// The same call again, and with other numbers.
void check_gate_repeats(Library& library);
// What is not served is refused by name, and nothing is written.
void check_gate_refusals(Library& library);
// aux has the bits of the product that is not gated, and D those that it has without aux.
void check_gate_aux(Library& library);

// Gradients are as near to the exact ones as fp32 can be, whatever activation, types, places and blocks.
void check_gate_gradients(Library& library);
// NaN, infinities and what a limit or ReLU cuts.
void check_gate_gradient_values(Library& library);
// The same call has the same bits, and so has one in place.
void check_gate_gradient_bits(Library& library);
// What is wrong is named, and nothing is written.
void check_gate_gradient_refusals(Library& library);

}  // namespace hg::test
