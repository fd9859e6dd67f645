// What a handle promises beside right results: the same checks for the host and for every GPU backend,
// reported to GoogleTest.
#pragma once

#include "gemm_case.hpp"
#include "library.hpp"

#include <functional>
#include <memory>
#include <string>

namespace hg::test {

using MakeLibrary = std::function<std::unique_ptr<Library>()>;

// Matrix-vector products with every sign of increment.
void check_gemv(Library& library);
// The workspace that hgemm_workspace_size() returns suffices; with one byte less the GEMM is refused or
// runs without.
void check_workspace(Library& library);
// Fewer SMs or threads give the same bits.
void check_sm_count(Library& library);
// Several threads, each with its own handle, get the bits that one thread gets.
void check_threads(const MakeLibrary& make);
// Element offsets beyond 2^31: leading dimensions and strides that only 64 bits hold.
void check_far_offsets(Library& library);
// Grouped GEMMs equal the GEMMs of their groups. False if the grouping is not supported.
bool check_grouped(Library& library, hgemm_grouping_t grouping);
// Of gated groups aux has the bits of the products, D those that it has without aux, and both are right
// however the rows are cut.
void check_aux_of_groups(Library& library);
// What is wrong with it is named, and nothing is written.
void check_aux_refusals(Library& library);
// The call, once changed, is refused with an error that has this text, and writes nothing.
void expect_refused(
    Library& library, const GemmCase& g, hgemm_status_t status, const std::string& text,
    void (*change)(hgemm_args_t&) = [](hgemm_args_t&) {});

}  // namespace hg::test
