// Kernel rows of sm90 and their parameters: host and device.
#pragma once

#include "arch/common/params.hpp"
#include "arch/common/tile_order.hpp"

#include <cuda.h>

namespace hg::sm90 {

struct Config {
    int m, n, k;    // tile of a CTA
    int stages;     // of shared memory
    int consumers;  // warpgroups, 64 rows of the tile each

    constexpr int threads() const { return 128 * (1 + consumers); }
};

// What a TMA box and a wgmma atom span: 64 elements, 128 bytes, of the contiguous dimension.
constexpr int span_elements = 64, span_bytes = 128;

// Staging of a consumer warpgroup's output: two boxes of 64 rows x 128 bytes, or a chunk of 16 x 64
// floats for each warp.
constexpr int box_bytes = 64 * span_bytes, boxes = 2;

template <Config C>
struct alignas(1024) Smem {
    static_assert(C.k == span_elements && C.m == 64 * C.consumers && C.n % 64 == 0 && C.n <= 256);
    uint16_t a[C.stages][C.m * C.k];
    uint16_t b[C.stages][C.n * C.k];
    unsigned char staging[C.consumers][boxes][box_bytes];
    uint64_t full[C.stages];
    uint64_t empty[C.stages];
};

constexpr int smem_limit = 227 * 1024;

struct Params {
    CUtensorMap a, b, d;  // boxes: see pack_operand() and pack_result() in backend.cpp
    OutputParams output;
    int32_t k;
    int32_t tiles;  // of all problems
    TileGrid grid;
    int32_t a_batch_step, b_batch_step;  // 0: all problems share the operand
    bool tma_store;                      // d is valid and the output is plain
};

}  // namespace hg::sm90
