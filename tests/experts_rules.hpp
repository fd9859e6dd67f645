// Layers of experts: the same checks for the host and for every GPU backend, reported to GoogleTest.
#pragma once

#include "library.hpp"

namespace hg::test {

// Choices are sorted stably, for all numbers of tokens and experts, with and without choice_of_row, and
// nothing else is written.
void check_routes(Library& library);
// So they are with little workspace or none, and on few SMs.
void check_route_workspaces(Library& library);
// Rows have the bits of products and sums that are rounded one after the other, whatever types, places and
// alignment they have. What no choice has a row for is not read, and rows that no choice has stay as they
// are.
void check_gathered_rows(Library& library);
void check_combined_rows(Library& library);
// Dot products of rows are as near to the exact ones as sums in fp32 can be, and 0 where there is no row.
// What no choice has a row for is not read.
void check_dot_rows(Library& library);
// Their bits depend on neither the call's other tokens, nor places, nor the number of SMs.
void check_dot_bits(Library& library);
// Rows that no group owns become 0, and all else stays as it is.
void check_cleared_rows(Library& library);
void check_clear_refusals(Library& library);
// What is routed and gathered comes back combined, with and without a product for each expert.
void check_expert_layers(Library& library);
// What is wrong is named, and nothing is written.
void check_expert_refusals(Library& library);

}  // namespace hg::test
