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

// Algorithms that the caller put together are to be honoured, those that the heuristic returned need not
// be.
void remember_made(const LtAlgorithm& algorithm);
bool was_made(const LtAlgorithm* algorithm);

}  // namespace hg::shim
