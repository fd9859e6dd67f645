// Kernels of sm100 and their parameters: host and device.
#pragma once

#include "arch/common/params.hpp"
#include "arch/common/tile_order.hpp"

#include <cuda.h>

namespace hg::sm100 {

// How clusters walk the output:
//   Dynamic  cluster launch control: the grid has a cluster for each tile, and one that is done takes over
//            the tile of a cluster that has not started
//   Static   every so many tiles, in a grid that fits the device
//   SplitK   one tile a cluster, whose CTAs take a slice of K each and add up in shared memory
enum class Schedule { Dynamic, Static, SplitK };

// tcgen05.mma multiplies tile_m rows of A by tile_n columns of B. A and B are those of the problem, or the
// other way round where Params::swap_ab says so: the same kernel then computes the transposed tile.
struct Config {
    Schedule schedule;
    int cta_group;       // CTAs that multiply together: 1, or 2, each with half of the tile's A and B
    int tile_m, tile_n;  // of a cluster, which is such a group, or as many CTAs as there are slices of K
    int stages;          // of shared memory

    constexpr bool is_split() const { return schedule == Schedule::SplitK; }
    // A block is what one tcgen05.mma spans along M: 128 lanes of tensor memory in each CTA.
    constexpr int block() const { return 128 * cta_group; }
    // Consumers, each with a block of its own; they share the stages' B.
    constexpr int consumers() const { return tile_m / block(); }
    // Accumulators of a consumer: while one is stored the other is multiplied.
    constexpr int accumulators() const { return !is_split() && 2 * consumers() * tile_n <= 512 ? 2 : 1; }
    constexpr int tmem_columns() const { return tile_n < 32 ? 32 : accumulators() * consumers() * tile_n; }
    // Four warps of the epilogue, whose place among four is their quarter of tensor memory; then the
    // producer, the scheduler and the consumers.
    constexpr int threads() const { return 32 * (6 + consumers()); }
};

constexpr int epilogue_warps = 4, producer_warp = 4, scheduler_warp = 5, first_consumer_warp = 6;

// What a TMA box and the swizzle span: 64 elements, 128 bytes, of the contiguous dimension. Operands come
// in panels of 64 x 64 elements, whichever dimension is contiguous.
constexpr int tile_k = 64, span_elements = 64, span_bytes = 128, panel_bytes = 8192;

// Of a CTA.
constexpr int a_rows(const Config& c) { return 128 * c.consumers(); }
constexpr int b_rows(const Config& c) { return c.tile_n / c.cta_group; }
// MN-major operands come in whole panels.
constexpr int panels(int rows) { return (rows + span_elements - 1) / span_elements; }
constexpr int operand_bytes(int rows) { return panels(rows) * panel_bytes; }

// Staging of a warp's output: boxes of 32 lanes by 64 columns of 16 bits or 32 of 32 bits.
constexpr int staging_buffer_bytes = 4096, staging_buffers = 2;

// A split tile: eight y of 32 lanes at a time, from other slices and on their way to the output's rows.
constexpr int max_slices = 8;  // CTAs of a cluster, on every device
constexpr int part_bytes = 32 * 8 * 4, part_pitch = 36;

// What the other slices send to one owner of a split tile at most, of a warp's lanes.
constexpr int incoming_bytes(const Config& c)
{
    int most = 0;
    for (int split = 2; c.is_split() && split <= max_slices; ++split) {
        const int owners = split < c.tile_n / 8 ? split : c.tile_n / 8;
        const int parts = (split - 1) * ((c.tile_n / 8 + owners - 1) / owners);
        most = parts > most ? parts : most;
    }
    return most * part_bytes;
}

constexpr int staging_bytes(const Config& c)
{
    return c.is_split() ? part_pitch * 8 * 4 : staging_buffers * staging_buffer_bytes;
}

// Tiles that a cluster may hold before it begins them.
constexpr int responses = 2, response_bytes = 16;

template <Config C>
struct alignas(1024) Smem {
    static_assert(C.tile_m % C.block() == 0 && C.tile_n <= 256);
    static_assert(C.is_split() ? C.tile_n % 16 == 0 && C.tile_m == 128 : b_rows(C) % span_elements == 0);
    static_assert(C.tmem_columns() >= 32 && (C.tmem_columns() & (C.tmem_columns() - 1)) == 0);
    static_assert(C.tmem_columns() <= 512 && C.stages >= 2);
    struct Stage {
        unsigned char a[operand_bytes(a_rows(C))];
        unsigned char b[operand_bytes(b_rows(C))];
    };
    Stage stage[C.stages];
    unsigned char staging[epilogue_warps][staging_bytes(C)];
    alignas(16) unsigned char incoming[epilogue_warps][incoming_bytes(C) + 16];
    alignas(16) unsigned char response[responses][response_bytes];
    uint64_t full[C.stages], empty[C.stages];
    uint64_t acc_full[C.consumers()][C.accumulators()], acc_empty[C.consumers()][C.accumulators()];
    uint64_t tile_full[responses], tile_empty[responses];
    uint64_t partials_full;
    uint32_t tmem;  // where the accumulators begin
};

constexpr int smem_limit = 227 * 1024;

struct Params {
    CUtensorMap a, b, d;  // boxes: see pack.cpp
    OutputParams output;
    int32_t k;
    int32_t tiles;  // of all problems
    TileGrid grid;
    int32_t a_batch_step, b_batch_step;  // 0: all problems share the operand
    uint32_t instruction;                // tcgen05's instruction descriptor
    Major a_major, b_major;
    int32_t split;                       // slices of k
    uint8_t part_start[max_slices + 1];  // blocks of eight y from here on belong to slice i
    bool swap_ab;                        // M of the MMA is N of the problem
    bool tma_store;                      // d is valid and the output is plain
};

// PTX ISA 9.7.16.4.2: f32 results, both operands of one type.
constexpr uint32_t instruction_descriptor(const Config& c, Type type, Major a, Major b)
{
    const uint32_t f32 = 1, operand = type == Type::BF16;
    return f32 << 4 | operand << 7 | operand << 10 | uint32_t{a == Major::MN} << 15 |
           uint32_t{b == Major::MN} << 16 | static_cast<uint32_t>(c.tile_n / 8) << 17 |
           static_cast<uint32_t>(c.block() / 16) << 24;
}

}  // namespace hg::sm100
