// Params: what the host tells a kernel, and the layout of the workspace that it points to. Host and device.
#pragma once

#include "arch/common/divisor.hpp"
#include "arch/common/params.hpp"
#include "arch/common/tile_order.hpp"
#include "arch/common/types.hpp"
#include "arch/sm90/config.hpp"

#include <cuda.h>

#include <cstdint>

namespace hg::sm90 {

// Stream-K: partial sums that a consumer may leave in the workspace, twice a CTA.
constexpr int part_floats(const Config& c) { return c.blocks() * 64 * c.tile_n; }
constexpr int64_t stream_bytes(const Config& c, int64_t clusters)
{
    return 2 * clusters * c.ctas() * c.parts() * part_floats(c) * 4;
}

// Words that are 0 between kernels. Stream-K, of so many clusters of tiles: arrivals of each part of a
// tile.
constexpr int64_t streamed_words(const Config& c, int64_t tiles) { return tiles * c.ctas() * c.parts(); }

// SplitKGlobal, of so many clusters of tiles: arrivals of each tile, then the partial sums of all slices.
constexpr int64_t arrival_words(const Config& c, int64_t clusters)
{
    return (clusters * c.ctas() + 31) / 32 * 32;
}
constexpr int64_t global_partial_words(const Config& c, int64_t clusters, int split)
{
    return c.is_global() && split > 1 ? clusters * c.ctas() * split * c.tile_m * c.tile_n : 0;
}

// The L2 policies that createpolicy.fractional gives for all lines of an access. As parameters they reach
// the uniform registers that TMA reads them from.
constexpr uint64_t evict_normal = 0x1000000000000000, evict_first = 0x12F0000000000000;

// Persistent, split-K and grouped kernels. A and B are those of wgmma: with swap_ab B and A of the problem.
struct Params {
    CUtensorMap a, b, d;  // boxes: see pack_operand() and pack_results() in pack.cpp
    CUtensorMap c, aux;   // Epilogue::Fused
    OutputParams output;
    // From here to the grid: what a CTA begins with, in few lines of constant memory.
    bool remapped;        // `remap` holds, else clusters keep the order of their launch
    bool raster_along_n;  // tiles that follow each other lie along N
    bool swap_ab;         // M of wgmma is N of the problem
    bool tma_store;       // d is valid
    Epilogue epilogue;    // persistent kernels
    bool vectors;         // Output::vectors of the problem
    bool early;           // the next kernel may start at once
    bool staggered;       // SplitK: the consumers end one after the other
    int32_t k_tiles;
    int32_t tiles;  // of all problems; of whole clusters
    TileGrid grid;  // rows: M, columns: N; the other way round where raster_along_n says so
    int32_t a_batch_step, b_batch_step;  // 0: all problems share the operand
    uint64_t a_policy, b_policy;         // L2 policies of the operands
    uint64_t d_policy;                   // and of the output
    int32_t prefetched;                  // K tiles of a CTA's first tile to prefetch into L2
    int32_t stream_tiles;    // stream-K: the first tiles, whose K tiles the clusters share evenly
    float* partials;         // stream-K: sums; SplitKGlobal: words that are 0 between launches
    uint32_t* arrivals;      // stream-K, SplitKGlobal: 0 between launches
    uint32_t* tile_counter;  // null, or tiles fetched from the dynamic scheduler: 0 between launches
    Divisor cluster;         // SplitK: CTAs of a cluster
    Divisor slice_clusters;  // SplitKGlobal: clusters of a slice of K
    int32_t split;           // slices of K
    int32_t slice_start[max_slices + 1];  // K tiles from here on belong to slice i
    int32_t part;                         // blocks of eight columns that a slice owns, the last ones fewer
    Divisor row_vectors;   // split-K kernels: of eight elements, in a row of the longest part
    Divisor rows_at_once;  // split-K kernels: rows that the consumers store at a time
    uint8_t remap[max_remapped_clusters];  // clusters by the order of their launch: see choose/raster.hpp
    Groups groups;                         // grouped kernels
    int32_t group_count, group_tiles_n;    // grouped kernels: tiles_n counts clusters along N
};

}  // namespace hg::sm90
