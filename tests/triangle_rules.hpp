// Triangles of symmetric results: the same checks for the host and for every GPU backend, reported to
// GoogleTest.
#pragma once

#include "gemm_case.hpp"
#include "library.hpp"

#include <cstdint>

namespace hg::test {

// Number `form` of the cases that differ in half, layout, operands and type.
GemmCase triangle_case(unsigned form, int64_t n, int64_t k);

// Every half, layout, type, batch and function is right, and the other half is as promised.
void check_triangles(Library& library);
// In modes that promise bits, what is computed has those of the whole product, however D is cut.
void check_triangle_bits(Library& library);
// What is computed whole is symmetric in all bits, whatever kernel computes it.
void check_triangle_symmetry(Library& library);
// A workspace of the size that is told suffices, and so does a larger one.
void check_triangle_workspaces(Library& library);
// What is not served is refused by name, and nothing is written.
void check_triangle_refusals(Library& library);

}  // namespace hg::test
