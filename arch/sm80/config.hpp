// Kernels of sm80 and their parameters: host and device.
#pragma once

#include "arch/common/params.hpp"
#include "arch/common/tile_order.hpp"
#include "arch/common/types.hpp"

namespace hg::sm80 {

// How a kernel reads its operands, and its entry points beside f16 and bf16.
enum class Family {
    Tile,              // 16-byte vectors: one entry point for each pair of majors
    Grouped,           // the same, two for groups of rows, and one for groups of K, of MN-major operands;
                       // and for K-major A two with gates, and two with gates for groups of rows
    Rows,              // the same as Tile for few rows: only for A contiguous along K
    Columns,           // the same for few columns: only for B contiguous along K
    Unaligned,         // contiguous in one dimension: an entry point for each pair of majors
    UnalignedRows,     // the same as Unaligned, only for A contiguous along K
    UnalignedColumns,  // the same, only for B contiguous along K
    Any,               // element by element, any strides and alignment: one entry point, and two for groups
};

struct Config {
    Family family;
    int tile_m, tile_n, tile_k;  // of a CTA
    int stages;                  // of shared memory
    int warps_m, warps_n;        // how the tile is divided

    constexpr bool takes_any() const { return family == Family::Any; }
    constexpr bool takes_groups() const { return family == Family::Grouped || takes_any(); }
    constexpr bool takes_k_groups(Major a, Major b) const
    {
        return takes_any() || (family == Family::Grouped && a == Major::MN && b == Major::MN);
    }
    // With gates: in each warp's columns first the gates, then their up elements.
    constexpr bool takes_gates() const { return family == Family::Grouped; }
    constexpr int gates_of_warp() const { return warp_n() / 2; }
    constexpr bool few_rows() const { return family == Family::Rows || family == Family::UnalignedRows; }
    constexpr bool few_columns() const
    {
        return family == Family::Columns || family == Family::UnalignedColumns;
    }
    constexpr bool takes_majors(Major a, Major b) const
    {
        return (!few_rows() || a == Major::K) && (!few_columns() || b == Major::K);
    }
    constexpr bool takes_unaligned() const
    {
        return family == Family::Unaligned || family == Family::UnalignedRows ||
               family == Family::UnalignedColumns;
    }
    // Per SM, for ptxas: without a bound it spills to fit one more; unaligned kernels fit three.
    constexpr int min_ctas() const { return takes_unaligned() ? 3 : 1; }
    constexpr int warps() const { return warps_m * warps_n; }
    constexpr int threads() const { return 32 * warps(); }
    constexpr int warp_m() const { return tile_m / warps_m; }
    constexpr int warp_n() const { return tile_n / warps_n; }
    constexpr int stage_bytes() const { return 2 * (tile_m + tile_n) * tile_k; }
};

// Dynamic shared memory of a CTA; the epilogue's chunks reuse the stages.
template <Config C>
struct Smem {
    static_assert(C.tile_k == 32 || C.tile_k == 64);
    static_assert(C.tile_m % 64 == 0 || C.few_rows());  // panels of MN-major operands
    static_assert(C.tile_n % 64 == 0 || C.few_columns());
    static_assert(C.warp_m() % 16 == 0 && C.warp_n() % 16 == 0);
    alignas(128) uint16_t a[C.stages][C.tile_m * C.tile_k];
    alignas(128) uint16_t b[C.stages][C.tile_n * C.tile_k];
};

// Element (row, k) of an operand is at problem_base() + row * row_stride + k * k_stride.
struct OperandParams {
    const uint16_t* ptr;
    const uint16_t* const* array;
    int64_t row_stride, k_stride, batch_stride;
    uintptr_t begin, end;  // without `array`: where the operands of all problems lie in memory
};

// Elements from the first one of an operand to behind its last one.
constexpr int64_t extent(const OperandParams& p, int64_t rows, int64_t k)
{
    return (rows - 1) * p.row_stride + (k - 1) * p.k_stride + 1;
}

// Where gated kernels find gates and their up elements. Gates that alternate with them lie in rows of B of
// twice the stride.
struct GateTiles {
    Gate gate;
    Divisor block;   // gates that lie together
    bool alternate;  // a column of gates, one of up elements, and so on
    int64_t up;      // elements of B from a gate to its up element
};

struct Params {
    OperandParams a, b;
    OutputParams output;
    int64_t k;
    TileGrid grid;
    SliceParams slices;
    int32_t first;  // index of the first CTA of this launch, counted over tiles and their slices
    Groups groups;  // of grouped kernels
    int32_t group_count, group_tiles_n;  // of kernels for groups of rows, instead of `grid`
    GateTiles gates;  // of gated kernels, of which output.n counts columns of the product
};

}  // namespace hg::sm80
