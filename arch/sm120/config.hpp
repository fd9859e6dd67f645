// Kernels of sm120 and their parameters: host and device.
#pragma once

#include "arch/common/params.hpp"
#include "arch/common/tile_order.hpp"

#include <cuda.h>

namespace hg::sm120 {

struct Config {
    int tile_m, tile_n, tile_k;  // of a CTA
    int stages;                  // of shared memory
    int warps_m, warps_n;        // how the tile is divided
    int ctas_per_sm;
    int registers;  // of a consumer's thread, taken from the producer's warpgroup; 0: all threads have as
                    // many

    constexpr int consumers() const { return warps_m * warps_n; }
    // The producer is one warp. Only whole warpgroups give up registers, so three warps then stay idle.
    constexpr int threads() const { return 32 * (consumers() + (registers > 0 ? 4 : 1)); }
    constexpr int warp_m() const { return tile_m / warps_m; }
    constexpr int warp_n() const { return tile_n / warps_n; }
    constexpr int stage_bytes() const { return 2 * (tile_m + tile_n) * tile_k; }
    // A warp's part of the stage that stages the output.
    constexpr int staging_bytes() const { return stage_bytes() / consumers(); }
};

// MN-major operands lie in panels of 64 rows, with 128 bytes for each K; K-major ones have C.tile_k
// elements for each row.
constexpr int panel = 64;

// Boxes of the output have as many rows as an mma fragment, and as many columns as a warp's part or 128
// bytes.
constexpr int box_rows = 16;
constexpr int box_columns(const Config& c, Type type)
{
    return type == Type::F32 || c.warp_n() < 64 ? 32 : 64;
}
constexpr int box_bytes(const Config& c, Type type)
{
    return box_rows * box_columns(c, type) * (type == Type::F32 ? 4 : 2);
}

template <Config C>
struct alignas(1024) Smem {
    static_assert(C.tile_k == 32 || C.tile_k == 64);
    static_assert(C.tile_m % panel == 0 && C.tile_n % panel == 0 && C.warp_m() % 16 == 0 &&
                  C.warp_n() % 32 == 0);
    static_assert(C.staging_bytes() % 1024 == 0 && C.staging_bytes() >= box_bytes(C, Type::F32));
    struct Stage {
        unsigned char a[2 * C.tile_m * C.tile_k];
        unsigned char b[2 * C.tile_n * C.tile_k];
    };
    Stage stage[C.stages];
    uint64_t full[C.stages];
    uint64_t empty[C.stages];
};

// Registers that a thread of the producer's warpgroup keeps, if consumers have more.
constexpr int producer_registers = 24;

// Bytes of shared memory of a CTA and of an SM, and what the system reserves of each CTA.
constexpr int smem_limit = 99 * 1024, smem_per_sm = 100 * 1024, smem_reserved = 1024;
constexpr int registers_per_sm = 65536;

struct Params {
    CUtensorMap a, b, d;  // boxes: see pack_gemm()
    OutputParams output;
    int32_t k;
    int32_t tiles;  // of all problems
    TileGrid grid;
    int32_t a_batch_step, b_batch_step;  // 0: all problems share the operand
    bool tma_store;                      // d is valid and the output is plain
};

}  // namespace hg::sm120
