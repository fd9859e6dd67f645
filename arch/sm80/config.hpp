// Kernels of sm80 and their parameters: host and device.
#pragma once

#include "arch/common/params.hpp"
#include "arch/common/tile_order.hpp"

namespace hg::sm80 {

struct Config {
    int m, n, k;           // tile of a CTA
    int stages;            // of shared memory
    int warps_m, warps_n;  // how the tile is divided
    bool general;          // reads operands element by element: any strides and alignment

    constexpr int threads() const { return 32 * warps_m * warps_n; }
    constexpr int warp_m() const { return m / warps_m; }
    constexpr int warp_n() const { return n / warps_n; }
};

// Dynamic shared memory of a CTA; the epilogue's chunks reuse the stages.
template <Config C>
struct Smem {
    static_assert(C.k == 32 && C.m % 64 == 0 && C.n % 64 == 0);
    static_assert(C.warp_m() % 16 == 0 && C.warp_n() % 32 == 0);
    alignas(128) uint16_t a[C.stages][C.m * C.k];
    alignas(128) uint16_t b[C.stages][C.n * C.k];
};

// Element (row, k) of an operand is at base + row * row_stride + k * k_stride.
struct OperandParams {
    const uint16_t* ptr;
    const uint16_t* const* array;  // null, or one base per problem
    int64_t row_stride, k_stride, batch_stride;
};

struct Params {
    OperandParams a, b;
    OutputParams output;
    int64_t k;
    TileGrid grid;
    int32_t first;  // index of the first tile of this launch
    Groups groups;  // grouped kernels use these three instead of `grid`
    int32_t group_count, group_tiles_n;
};

}  // namespace hg::sm80
