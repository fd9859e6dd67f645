// Smem: the shared memory of a kernel. Host, which needs its size, and device.
#pragma once

#include "arch/common/types.hpp"
#include "arch/sm90/config.hpp"

#include <cstdint>

namespace hg::sm90 {

constexpr int max_reduction_bytes(const Config& c)
{
    int bytes = 0;
    for (int split = 2; split <= max_slices; ++split)
        if (can_split(c, split) && reduction_bytes(c, split) > bytes)
            bytes = reduction_bytes(c, split);
    return bytes;
}

constexpr int max_incoming_bytes(const Config& c)
{
    int bytes = 0;
    for (int split = 2; split <= max_cluster; ++split)
        if (!c.is_global() && can_split(c, split) && incoming_bytes(c, split) > bytes)
            bytes = incoming_bytes(c, split);
    return bytes;
}

// Elements of the bias that a consumer of a persistent kernel keeps.
constexpr int max_bias(const Config& c) { return c.tile_n > c.blocks() * 64 ? c.tile_n : c.blocks() * 64; }

// A tile's first row and column, as wgmma sees M and N.
struct TileCoord {
    int32_t m, n, batch;
};

// Slots of tile indices that a consumer sends to all roles: persistent/scheduler.cuh.
constexpr int tile_slots = 4;

template <Config C, Major MB>
struct alignas(1024) Smem {
    static constexpr int stages = stage_count(C, MB);
    static constexpr int staging_bytes = C.is_split() ? 16 : staging_buffers(C) * staging_buffer_bytes;
    static_assert(stages >= 2 && C.tile_m % (64 * C.blocks()) == 0 && C.tile_n % 8 == 0 && C.tile_n <= 256);
    static_assert(!C.is_split() || C.blocks() == 1);
    static_assert(C.is_split() || C.consumers == 2);
    struct Stage {
        unsigned char a[a_bytes(C)];
        unsigned char b[b_bytes(C, MB)];
    };
    // Split-K: after the main loop the stages' room holds the owned blocks as the epilogue stages them and,
    // behind, the partial sums that their owner adds up.
    union {
        Stage stage[stages];
        alignas(16) float staged[C.is_split() ? staged_bytes(C) / 4 : 1];
        alignas(16) unsigned char sums[C.is_split() ? reduction_offset(C) + max_reduction_bytes(C) : 1];
    };
    alignas(1024) unsigned char staging[C.is_split() ? 1 : C.consumers][staging_bytes];
    // The bias of a tile, along M or N.
    alignas(16) float bias[C.is_split() ? 1 : C.consumers][C.is_split() ? 1 : max_bias(C)];
    alignas(16) unsigned char incoming[max_incoming_bytes(C) + 16];  // SplitK: partial sums of other slices
    uint64_t full[stages];
    uint64_t empty[stages];
    uint64_t mma_order[2];                   // PingPong
    uint64_t c_full[2][staging_buffers(C)];  // fuses_c: boxes of C, for each consumer
    uint64_t tile_full[tile_slots];          // PingPong
    int32_t next_tile[tile_slots];
    uint64_t partials_full;  // SplitK
    TileCoord at;            // split-K kernels
    int32_t tile, slice;     // SplitKGlobal
    int32_t end;             // groups: behind the last row of the tile's group
    uint32_t
        broadcast[C.consumers];  // from one thread of a consumer to the others: stream_k.cuh, global.cuh
};

}  // namespace hg::sm90
