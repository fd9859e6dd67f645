// Reads the descriptors of a cublasLtMatmul call through the real library.
#pragma once

#include "real.hpp"
#include "route.hpp"

namespace hg::shim {

struct LtLayouts {
    void *a, *b, *c, *d;
};

// Fills what the descriptors say; a descriptor that the real library does not read leaves values that no
// product has.
void read_descriptors(const Real& real, void* desc, const LtLayouts& layouts, LtCall& call);

// Does a preference of the heuristic rule out algorithms that split k?
bool forbids_split(const Real& real, void* preference);

// Algorithms that the caller put together, or that are not to split k, are to be honoured, for this reason;
// others that the heuristic returned need not be.
void remember(const LtAlgorithm& algorithm, Reason reason);
Reason check(const LtAlgorithm* algorithm);

// In a child process.
void leave_algorithms_behind();

}  // namespace hg::shim
