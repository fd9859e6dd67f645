// Kernels that read operands straight into registers, whatever their alignment: rows and parameters, host
// and device.
#pragma once

#include "arch/common/divisor.hpp"
#include "arch/common/params.hpp"
#include "arch/common/tile_order.hpp"
#include "arch/common/types.hpp"
#include "arch/sm90/config.hpp"

#include <cstdint>

namespace hg::sm90 {

// x, the operand with many rows, has a contiguous dimension; y, which has few, any strides.
struct DirectConfig {
    int tile_m, tile_n;  // of a CTA
    int rows;            // of x that a warp multiplies, where they are contiguous along k
    int warps;           // of a CTA
    int ctas_per_sm;     // CTAs a multiprocessor

    constexpr int threads() const { return 32 * warps; }
};

// What a lane holds of x: eight vectors of eight elements.
constexpr int direct_vectors = 8;

// Is it one of direct_lines.cuh, for few rows and x that is not contiguous along k?
constexpr bool is_gemv(const DirectConfig& c) { return c.tile_n < 8; }

constexpr int direct_rows(const DirectConfig& c, Major major)
{
    return major == Major::K ? c.rows : c.tile_m;
}
// k's of a step, which is what a warp multiplies at a time.
constexpr int direct_step(const DirectConfig& c, Major major)
{
    return direct_vectors * 8 * 32 / direct_rows(c, major);
}
// Warps, or parts of them, that share k.
constexpr int direct_sharers(const DirectConfig& c, Major major)
{
    return is_gemv(c) ? c.warps * 32 * 8 / c.tile_m : c.warps * direct_rows(c, major) / c.tile_m;
}

// What there is room for.
constexpr int direct_splits(const DirectConfig& c) { return c.tile_m * c.tile_n > 1024 ? 4 : max_cluster; }

// A tile of floats, contiguous along x. The padding keeps a fragment's columns in different banks, and the
// vectors of a line.
constexpr int direct_pitch(const DirectConfig& c) { return c.tile_m + (is_gemv(c) ? c.tile_m / 8 : 4); }

// A lane holds eight vectors of eight rows where x is not contiguous along k.
constexpr bool has_direct_major(const DirectConfig& c, Major major)
{
    return major == Major::K ? !is_gemv(c) : c.tile_m == 64 || is_gemv(c);
}

// Rows of x that a tile gets. Lines that begin within a vector take one more.
constexpr int direct_width(const DirectConfig& c, bool aligned)
{
    return is_gemv(c) && !aligned ? c.tile_m - 8 : c.tile_m;
}

template <DirectConfig C>
struct DirectSmem {
    static constexpr int sharers = is_gemv(C) ? direct_sharers(C, Major::MN) : C.warps;
    float sums[sharers][C.tile_n][direct_pitch(C)];                        // of those that share k
    alignas(16) float incoming[direct_splits(C) - 1][C.tile_n][C.tile_m];  // of the other slices of k
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
    TileGrid grid;  // rows: x, columns: y, which follow each other
    int32_t k;
    int32_t width;                         // rows of x from tile to tile
    Divisor split;                         // slices of k: CTAs of a cluster
    int32_t slice_start[max_cluster + 1];  // steps from here on belong to slice i
    bool swap_ab;                          // x is n and y is m
    bool prefetches;                       // the first steps may be asked for before earlier kernels end
    bool early;                            // the next kernel may start at once
};

}  // namespace hg::sm90
