// The kernels of the article that the sm120 backend was compared with, and their one parameter: host and
// device.
#pragma once

#include "arch/common/tile_order.hpp"

#include <cuda.h>

namespace hg::seed {

// D = A * B, all row-major. CTAs compute one tile of 128 x 128 each, two rows of four warps.
constexpr int tile_m = 128, tile_n = 128, threads = 256;
constexpr int warps_n = 4, warp_m = 64, warp_n = 32;

struct Params {
    CUtensorMap a, b;  // boxes of k by 128 rows, and of 64 columns by k; of the TMA kernels
    const uint16_t *a_data, *b_data;
    uint16_t* d;
    int32_t n, k;
    TileGrid columns_first;  // its rows are the columns of tiles, of which eight are walked together
};

constexpr int stage_bytes(int tile_k) { return 2 * (tile_m + tile_n) * tile_k; }

}  // namespace hg::seed
