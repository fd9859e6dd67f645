// Params: the parameters of a kernel, and the layout of the workspace that they point to. Host and device.
#pragma once

#include "arch/common/divisor.hpp"
#include "arch/common/params.hpp"
#include "arch/common/tile_order.hpp"
#include "arch/common/triangle_order.hpp"
#include "arch/common/types.hpp"
#include "arch/sm90/config.hpp"

#include <cuda.h>

#include <cstdint>

namespace hg::sm90 {

// Stream-K: partial sums that a consumer may store in the workspace, at most two sets per CTA.
constexpr int partial_floats(const Config& c) { return c.blocks() * 64 * c.tile_n; }
constexpr int64_t stream_k_bytes(const Config& c, int64_t clusters)
{
    return 2 * clusters * c.ctas() * c.consumers_per_tile() * partial_floats(c) * 4;
}

// Tree kernels: sums of 1, 2, 4, ... quads of a tile may wait in the workspace, one of each.
constexpr int stored_levels(int64_t leaves)
{
    int levels = 0;
    for (int64_t quads = leaves / leaves_of_quad; quads > 1; quads /= 2)
        ++levels;
    return levels;
}
constexpr int64_t tree_bytes(const Config& c, int64_t ctas, int stored_levels)
{
    return ctas * stored_levels * c.consumers * partial_floats(c) * 4;
}

// Counters that are 0 between kernels. Stream-K, for so many clusters of tiles: arrivals of each consumer's
// share of a tile.
constexpr int64_t stream_k_words(const Config& c, int64_t tiles)
{
    return tiles * c.ctas() * c.consumers_per_tile();
}

// SplitKGlobal, for so many clusters of tiles: arrivals of each tile, then the partial sums of all slices,
// all 0 between kernels.
constexpr int64_t arrival_words(const Config& c, int64_t clusters)
{
    return (clusters * c.ctas() + 31) / 32 * 32;
}
constexpr int64_t global_partial_words(const Config& c, int64_t clusters, int split)
{
    return c.is_global() && split > 1 ? clusters * c.ctas() * split * c.tile_m * c.tile_n : 0;
}

// The L2 policies that createpolicy.fractional makes for all of an access. As parameters they reach the
// uniform registers that TMA reads them from.
constexpr uint64_t evict_normal = 0x1000000000000000, evict_first = 0x12F0000000000000;

// Where gated kernels find gates and their up elements: operand.cuh.
struct GateLayout {
    Gate gate;
    Divisor block;            // gates that lie together
    int32_t rows, k;          // of the tensor map, from a gate to its up element
    int32_t boxes, box_step;  // of a half of a tile; rows of B from one to the next
    int32_t box_bytes;
};

// Persistent, split-K and grouped kernels. A and B are the operands of wgmma: with swap_ab they are B and A
// of the problem.
struct Params {
    CUtensorMap a, b, d;  // boxes: see pack_operand() and pack_results() in pack.cpp
    CUtensorMap c, aux;   // Epilogue::Fused; triangle kernels: aux is D in transposed boxes
    OutputParams output;
    // From here to the grid: what a CTA reads first, close together in constant memory.
    bool remapped;           // `remap` is valid; else a cluster's index is its launch index
    bool raster_along_n;     // consecutive tiles lie along N
    bool a_is_k_major;       // else MN-major
    bool swap_ab;            // M of wgmma is N of the problem
    bool tma_store;          // d is valid
    Epilogue epilogue;       // persistent kernels
    bool vectors;            // rows of the output are whole aligned vectors
    bool pdl_early;          // Pdl::Early: the next kernel may start at once
    bool staggered;          // SplitK: the consumers end one after another
    bool prefetches_output;  // split-K kernels: C or a bias is prefetched into L2
    int32_t k_tiles;
    int32_t tiles;                       // of all problems; counted in clusters of tiles
    TileGrid grid;                       // rows: M, columns: N; with raster_along_n rows: N, columns: M
    int32_t last_m, last_n;              // the highest that tiles begin at: last_tile()
    int32_t a_batch_step, b_batch_step;  // 0: all problems share the operand
    uint64_t a_policy, b_policy;         // L2 policies of the operands
    uint64_t d_policy;                   // L2 policy of the output
    int32_t prefetched;                  // K tiles of a CTA's first tile to prefetch into L2
    int32_t stream_k_tiles;  // stream-K: tiles, the first ones, whose K tiles the clusters share evenly
    float* partials;         // partial sums of stream-K and tree; SplitKGlobal: 0 between launches
    uint32_t* arrivals;      // stream-K, SplitKGlobal: 0 between launches
    uint32_t* tile_counter;  // dynamic scheduler: tiles fetched, 0 between launches; null: static
    Divisor cluster;         // SplitK: CTAs of a cluster
    Divisor slice_clusters;  // SplitKGlobal: clusters of a slice of K
    int32_t split;           // slices of K
    int32_t slice_start[max_cluster + 1];  // SplitK: K tiles from here on belong to slice i
    Divisor slices;                        // SplitKGlobal: `split`, to compute the same
    int32_t blocks_per_owner;              // blocks of eight columns per slice of K, fewer in the last ones
    Divisor row_vectors;   // split-K kernels: vectors of eight elements in a row of the largest share
    Divisor rows_at_once;  // split-K kernels: rows that the consumers store at a time
    uint8_t remap[max_remapped_clusters];  // launch index -> index of a cluster: see choose/raster.hpp
    Groups groups;                         // grouped kernels
    int32_t group_count, group_tiles_n;    // grouped kernels: tiles_n counts clusters along N
    int32_t group_k;                       // K of all groups that divide K
    TriangleOrder triangle;                // triangle kernels
    bool upper;                            // of these: tiles lie above the diagonal, else below
    bool mirrored;                         // and each is stored a second time, transposed
    GateLayout gate;                       // gated kernels
    int32_t leaves, stored_levels;         // tree kernels: parts of K, and sums that wait in the workspace
};

}  // namespace hg::sm90
