// Reads the descriptors of a cublasLtMatmul call through the real library.
#pragma once

#include "real.hpp"
#include "route.hpp"

namespace hg::shim {

struct LtLayouts {
    void *a, *b, *c, *d;  // c: null counts as d
};

// Fills the call from its descriptors. If the real library cannot read one, values stay that no GEMM has.
void read_descriptors(const Real& real, void* desc, const LtLayouts& layouts, LtCall& call);

// Does a preference of the heuristic rule out algorithms with split-K?
bool forbids_split(const Real& real, void* preference);

// Notes an algorithm that the shim must honour, and why: the caller made it, or asked for one without
// split-K. Others that the heuristic returned need not be honoured.
void remember(const LtAlgorithm& algorithm, Reason reason);
Reason check(const LtAlgorithm* algorithm);

// An algorithm of zeros, which the heuristic never returns and cuBLAS refuses.
bool is_empty(const LtAlgorithm* algorithm);

// Forgets all algorithms in a forked child.
void leave_algorithms_behind();

}  // namespace hg::shim
