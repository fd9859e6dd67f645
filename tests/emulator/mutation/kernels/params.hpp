// Parameters of the kernels that exist for the mutation tests alone: host and device.
#pragma once

#include <cuda.h>

#include <cstdint>

namespace mutation {

// D = A * B^T, f16 to f32; A is m x k and B n x k, both with k contiguous.
struct Params {
    CUtensorMap a, b, d;  // boxes of 64 k's by the rows that one copy brings; of 32 columns for D
    float* d_rows;        // D once more, for plain stores
    int64_t ldd;
    int32_t m, n, k_tiles;
    int32_t tiles_m, tiles;  // tiles along m, and all of them
    bool tma_store;
};

constexpr int tile_k = 64;         // 128 bytes, the swizzle's span
constexpr int store_columns = 32;  // the same of floats

namespace tcgen05 {
// A pair of CTAs, a cluster, computes 256 x 128; each brings its 128 rows of A and 64 rows of B.
constexpr int tile_m = 128, tile_n = 128, copy_n = 64, store_rows = 32, threads = 192;
constexpr int stages_1 = 3, stages_2 = 4;  // of .cta_group::1, whose stages hold all of B, and ::2
}  // namespace tcgen05

}  // namespace mutation
