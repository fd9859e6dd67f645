// Direct and gemv kernels, which read operands straight into registers, whatever their alignment:
// configuration and parameters. Host and device.
#pragma once

#include "arch/common/divisor.hpp"
#include "arch/common/params.hpp"
#include "arch/common/tile_order.hpp"
#include "arch/common/types.hpp"
#include "arch/sm90/config.hpp"

#include <cstdint>

namespace hg::sm90 {

// A and B are those of the MMA: with swap_ab B and A of the problem. A, which has many rows, has a
// contiguous dimension; B, which has few columns, may have any strides.
struct DirectConfig {
    int tile_m, tile_n;  // of a CTA
    int warp_m;          // rows of A that a warp multiplies, if A is K-major; else a warp multiplies tile_m
    int warps;           // of a CTA
    int ctas_per_sm;

    constexpr int threads() const { return 32 * warps; }
};

// A lane holds eight vectors of eight elements of A.
constexpr int direct_vectors = 8;

// True for the kernels of gemv.cuh: few columns of B, and an A that is MN-major.
constexpr bool is_gemv(const DirectConfig& c) { return c.tile_n < 8; }

constexpr int direct_warp_m(const DirectConfig& c, Major major)
{
    return major == Major::K ? c.warp_m : c.tile_m;
}
// K's of a step: a warp multiplies one step at a time.
constexpr int direct_step(const DirectConfig& c, Major major)
{
    return direct_vectors * 8 * 32 / direct_warp_m(c, major);
}
// Warps, or with gemv groups of lanes, that alternate along K and add up.
constexpr int direct_sharers(const DirectConfig& c, Major major)
{
    return is_gemv(c) ? c.warps * 32 * 8 / c.tile_m : c.warps * direct_warp_m(c, major) / c.tile_m;
}

// Slices of K for which shared memory has room.
constexpr int max_direct_slices(const DirectConfig& c)
{
    return c.tile_m * c.tile_n > 1024 ? 4 : max_cluster;
}

// Floats from column to column of a staged tile, which is contiguous along M. The padding keeps a
// fragment's columns in different banks and, with gemv, the vectors of a column.
constexpr int direct_pitch(const DirectConfig& c) { return c.tile_m + (is_gemv(c) ? c.tile_m / 8 : 4); }

// An MN-major A needs tiles of 64 rows: a lane holds eight vectors of eight rows.
constexpr bool has_direct_major(const DirectConfig& c, Major major)
{
    return major == Major::K ? !is_gemv(c) : c.tile_m == 64 || is_gemv(c);
}

// Rows of A from tile to tile. Columns of A that begin inside a vector need one vector more.
constexpr int direct_width(const DirectConfig& c, bool aligned)
{
    return is_gemv(c) && !aligned ? c.tile_m - 8 : c.tile_m;
}

template <DirectConfig C>
struct DirectSmem {
    static constexpr int sharers = is_gemv(C) ? direct_sharers(C, Major::MN) : C.warps;
    float sums[sharers][C.tile_n][direct_pitch(C)];  // partial sums of the sharers
    alignas(16) float incoming[max_direct_slices(C) - 1][C.tile_n][C.tile_m];  // from the other slices of K
    uint64_t partials_full;
};

// Element (row, k) of problem z is at base(z) + row * row_stride + k * k_stride, base(z) as in Operand.
struct DirectOperand {
    const uint16_t* ptr;
    const uint16_t* const* array;
    int64_t batch_stride, row_stride, k_stride;
    int32_t rows;
};

struct DirectParams {
    DirectOperand a, b;
    OutputParams output;
    TileGrid grid;  // rows: M, columns: N; consecutive tiles lie along N
    int32_t k;
    int32_t width;                         // rows of A from tile to tile
    Divisor split;                         // slices of K: CTAs of a cluster
    int32_t slice_start[max_cluster + 1];  // steps from here on belong to slice i
    bool swap_ab;                          // M of the MMA is N of the problem
    bool prefetches;                       // a warp may prefetch its first step before earlier kernels end
    bool pdl_early;                        // Pdl::Early: the next kernel may start at once
};

}  // namespace hg::sm90
