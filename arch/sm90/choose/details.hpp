// What a plan decides once its kernel is known: raster, last tiles, prefetches, L2 policies, epilogue.
#pragma once

#include "arch/common/host/facts.hpp"
#include "arch/common/types.hpp"
#include "arch/sm90/config.hpp"
#include "src/plan/backend.hpp"
#include "src/plan/problem.hpp"

#include <cstdint>

namespace hg::sm90 {

// Which epilogue a persistent kernel has for this output; can_store() says whether it can.
Epilogue epilogue_of(const Config& config, const Facts& facts, bool swap_ab);

// Can a kernel make this output?
bool can_store(const Config& config, const Facts& facts, bool swap_ab);

// How many K tiles each CTA prefetches into L2 while earlier kernels end: of small operands all, up to 16;
// none if alpha may be 0, since then no operand may be touched.
int32_t count_prefetched(const Problem& problem, const Config& config, const Plan& plan, int sm_count);

// The highest row and column at which a tile begins. Where last tiles overlap, that is the size minus a
// tile: the last tile, and any that a cluster has beyond it, ends with the matrix. It computes and stores
// again what the tile before it does, with the same bits, and all CTAs load as many bytes:
// DESIGN.md#last-tiles. Elsewhere it is the size rounded up to eight, where only a cluster's surplus tiles
// begin, outside of the matrix. TMA and vectors begin at multiples of eight elements of a contiguous
// dimension.
struct LastTile {
    int32_t m, n;
};
LastTile last_tile(const Config& config, const Facts& facts, const Plan& plan);

// Fills plan.sm90 for a kernel of the table's KERNEL and TREE lines.
void decide_details(const Facts& facts, int sm_count, Plan& plan);
// The same for groups, whose rows are one problem, and triangles, which have an order of tiles of their
// own.
void decide_output_details(const Facts& facts, Plan& plan);

}  // namespace hg::sm90
