// Kernels of sm100 and their parameters: host and device.
#pragma once

#include "arch/common/params.hpp"
#include "arch/common/tile_order.hpp"
#include "arch/common/types.hpp"

#include <cuda.h>

namespace hg::sm100 {

// How clusters get their tiles:
//   Dynamic  cluster launch control: the grid has a cluster for each tile; a cluster that has finished
//            takes over the tile of one that has not started
//   Static   cluster i computes tiles i, i + clusters, ...; all clusters fit on the device
//   SplitK   one tile per cluster, whose CTAs take a slice of K each and add up in shared memory
enum class Schedule { Dynamic, Static, SplitK };

// tcgen05.mma multiplies tile_m rows of A by tile_n columns of B. A and B are those of the problem, or the
// other way round where Params::swap_ab says so: the same kernel then computes the transposed tile.
struct Config {
    Schedule schedule;
    int cta_group;       // CTAs that multiply together: 1, or 2 with half of the tile's A and B each
    int tile_m, tile_n;  // of a group
    int stages;          // of shared memory

    constexpr bool is_split() const { return schedule == Schedule::SplitK; }
    // A block is what one tcgen05.mma spans along M: 128 lanes of tensor memory in each CTA.
    constexpr int block() const { return 128 * cta_group; }
    // Consumers, each with a block of its own; they share B.
    constexpr int consumers() const { return tile_m / block(); }
    // Accumulators of a consumer: the epilogue stores one while the consumer fills the other.
    constexpr int accumulators() const { return !is_split() && 2 * consumers() * tile_n <= 512 ? 2 : 1; }
    constexpr int tmem_columns() const { return tile_n < 32 ? 32 : accumulators() * consumers() * tile_n; }
    // Four warps of the epilogue, each of which can access the quarter of tensor memory given by its index
    // modulo 4; then the producer, the scheduler and the consumers.
    constexpr int threads() const { return 32 * (6 + consumers()); }
};

constexpr int epilogue_warps = 4, producer_warp = 4, scheduler_warp = 5, first_consumer_warp = 6;

// A TMA box and the swizzle span 64 elements, 128 bytes, of the contiguous dimension. Operands come in
// panels of 64 x 64 elements, whichever dimension is contiguous.
constexpr int tile_k = 64, span_elements = 64, span_bytes = 128, panel_bytes = 8192;

// Rows of A and of B in a stage of one CTA.
constexpr int a_rows(const Config& c) { return 128 * c.consumers(); }
constexpr int b_rows(const Config& c) { return c.tile_n / c.cta_group; }
// MN-major operands come in whole panels.
constexpr int panels(int rows) { return (rows + span_elements - 1) / span_elements; }
constexpr int operand_bytes(int rows) { return panels(rows) * panel_bytes; }

// Staging buffers of a warp: boxes of 32 lanes by 64 columns of 16 bits or 32 columns of 32 bits.
constexpr int staging_buffer_bytes = 4096, staging_buffers = 2;

// Split-K: a fragment is eight columns of a warp's 32 lanes, as slices send it. fragment_pitch: floats from
// column to column where a warp transposes one.
constexpr int max_slices = 8;  // CTAs of a cluster: the portable limit
constexpr int fragment_bytes = 32 * 8 * 4, fragment_pitch = 36;

// Most bytes that the other slices send to one owner, for one warp.
constexpr int incoming_bytes(const Config& c)
{
    int max_fragments = 0;
    for (int split = 2; c.is_split() && split <= max_slices; ++split) {
        const int owners = split < c.tile_n / 8 ? split : c.tile_n / 8;
        const int fragments = (split - 1) * ((c.tile_n / 8 + owners - 1) / owners);
        max_fragments = fragments > max_fragments ? fragments : max_fragments;
    }
    return max_fragments * fragment_bytes;
}

constexpr int staging_bytes(const Config& c)
{
    return c.is_split() ? fragment_pitch * 8 * 4 : staging_buffers * staging_buffer_bytes;
}

// Slots for responses of the cluster launch control: tiles that a cluster may take over before it begins
// them.
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
    uint32_t tmem;  // tensor memory address of the first accumulator
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
    int32_t split;                        // slices of K
    uint8_t owner_start[max_slices + 1];  // blocks of eight columns from here on belong to slice i
    bool swap_ab;                         // M of the MMA is N of the problem
    bool tma_store;                       // d is valid and the output is plain
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
