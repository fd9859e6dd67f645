// host_packed: blocks of A and B are packed into panels that stay in a cache, and small tiles of D are
// summed in registers. Needs no library. An element's sum is the same whatever block, tile or thread
// computes it.
#pragma once

#include "arch/host/packed/kernels.hpp"
#include "arch/host/pool.hpp"
#include "src/plan/problem.hpp"

#include <cstddef>

namespace hg {

// K that is summed in registers before it is added to what is there. The order of each sum follows from it,
// but for AMX's, whose order has no slices.
constexpr int64_t packed_depth = 512;
// Largest block of D; also of its transpose, which is computed if D has few columns.
constexpr int64_t packed_rows = 512, packed_columns = 512;

struct PackedBlocks {
    int64_t m, n;       // of a block of D; the last ones may be smaller
    int64_t depth;      // K that is packed at a time
    int64_t parts;      // threads that share the blocks
    size_t part_bytes;  // of workspace, for each part

    size_t workspace() const { return static_cast<size_t>(parts) * part_bytes; }
};

// Whether the large operand, beside one of few rows, is read once and not packed.
bool reads_lines(const PackedKernels& kernels, const Problem& problem);

// At most `threads` parts, and only one if `workspace` bytes are too few for more.
PackedBlocks packed_blocks(const PackedKernels& kernels, const Problem& problem, int threads,
                           size_t workspace);

// Enough for `threads` parts of any problem.
size_t max_packed_workspace(const PackedKernels& kernels, int threads);

void multiply_packed(Pool& pool, const PackedKernels& kernels, const Problem& problem,
                     const PackedBlocks& blocks, void* workspace);

}  // namespace hg
