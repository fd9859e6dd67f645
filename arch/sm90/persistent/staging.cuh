// Staging buffers: boxes of shared memory that TMA stores, or fills with C. How a warp writes its
// accumulators to them, and adds C from them.
#pragma once

#include "arch/common/elements.cuh"
#include "arch/common/finish.cuh"
#include "arch/common/ptx/matrix.cuh"
#include "arch/common/ptx/warp.cuh"
#include "arch/common/swizzle.cuh"
#include "arch/common/types.hpp"
#include "arch/sm90/config.hpp"
#include "arch/sm90/smem.hpp"

#include <cstdint>

namespace hg::sm90 {

// A consumer, and where its block of 64 rows by tile_n columns lies in the output, in elements.
struct Block {
    int consumer, warp, lane;
    int block;  // of the consumer's part of the tile
    int64_t m, n;
    int32_t batch;
    unsigned char* staging;
    float* bias;      // of the tile
    uint32_t c_full;  // shared address of the barriers c_full[consumer]

    template <Config C, Major MB>
    __device__ static Block of(Smem<C, MB>& smem, const TileCoord& at, int consumer, int first_block)
    {
        const int thread = threadIdx.x % 128;
        return {consumer,
                thread / 32,
                thread % 32,
                0,
                int64_t{at.m} + first_block * 64,
                at.n,
                at.batch,
                smem.staging[consumer],
                smem.bias[consumer],
                ptx::shared_address(smem.c_full[consumer])};
    }

    // The thread that issues TMA stores and waits for them.
    __device__ bool leads() const { return warp == 0 && lane == 0; }
};

// The shared address of a lane's first chunk in a swizzled box. The lane's other chunks in that row are an
// exclusive or away. mov_b32 makes nvcc compute the address again for each box; it would keep all addresses
// beside the accumulators.
template <int Span>
__device__ inline uint32_t chunk_of_box(uint32_t box, int row, int chunk)
{
    return ptx::mov_b32(box + swizzle<Span>(row, chunk));
}

// The row address that a lane passes to stmatrix.x4 and ldmatrix.x4, for the 16 rows of its warp and 16
// columns.
template <int Columns>
__device__ inline uint32_t matrices_of_box(uint32_t box, const Block& at)
{
    return chunk_of_box<2 * Columns>(box, at.warp * 16 + at.lane / 8 % 2 * 8 + at.lane % 8, at.lane / 16);
}

// Writes the 16 rows of a warp by Columns columns of 16-bit results to a swizzled box of 64 rows.
template <Type T, int Columns>
__device__ inline void fill_box_16(uint32_t box, const float* acc, float alpha, const Block& at)
{
    const uint32_t first = matrices_of_box<Columns>(box, at);
#pragma unroll
    for (int j = 0; j < Columns / 16; ++j) {
        uint32_t bits[4];
#pragma unroll
        for (int i = 0; i < 4; ++i)
            bits[i] = to_bits2(alpha * acc[8 * j + 2 * i], alpha * acc[8 * j + 2 * i + 1], T);
        ptx::stmatrix_x4(first ^ (2 * j * chunk_bytes), bits);
    }
}

// The shared address of a lane's first two floats of 32 columns, in row lane / 4 + 8 * half of its warp's
// 16 rows.
__device__ inline uint32_t floats_of_box(uint32_t box, int half, const Block& at)
{
    const int column = at.lane % 4 * 2;
    return chunk_of_box<span_bytes>(box, at.warp * 16 + half * 8 + at.lane / 4, column / 4) +
           column % 4 * 4;
}

__device__ inline void fill_box_32(uint32_t box, const float* acc, float alpha, const Block& at)
{
#pragma unroll
    for (int half = 0; half < 2; ++half) {
        const uint32_t first = floats_of_box(box, half, at);
#pragma unroll
        for (int j = 0; j < 4; ++j)
            ptx::store_shared_f32x2(first ^ (2 * j * chunk_bytes), alpha * acc[4 * j + 2 * half],
                                    alpha * acc[4 * j + 2 * half + 1]);
    }
}

// alpha times the sums and beta times C.
__device__ inline float add_c(const Scalars& s, float sum, float c)
{
    return fmaf(s.beta, c, __fmul_rn(s.alpha, sum));
}

// Adds C to the sums that fill_box_16() would write, except to the first `overlap` columns.
template <Type T, int Columns>
__device__ inline void add_box_16(float* acc, uint32_t box, int overlap, const Scalars& s, const Block& at)
{
    const uint32_t first = matrices_of_box<Columns>(box, at);
#pragma unroll
    for (int j = overlap / 16; j < Columns / 16; ++j) {
        uint32_t bits[4];
        ptx::ldmatrix_x4(bits, first ^ (2 * j * chunk_bytes));
#pragma unroll
        for (int i = 0; i < 8; ++i)
            if (16 * j + i / 4 * 8 >= overlap)
                acc[8 * j + i] =
                    add_c(s, acc[8 * j + i], to_float(static_cast<uint16_t>(bits[i / 2] >> i % 2 * 16), T));
    }
}

// Adds C to the sums that fill_box_32() would write, except to the first `overlap` columns.
__device__ inline void add_box_32(float* acc, uint32_t box, int overlap, const Scalars& s, const Block& at)
{
#pragma unroll
    for (int half = 0; half < 2; ++half) {
        const uint32_t first = floats_of_box(box, half, at);
#pragma unroll
        for (int j = overlap / 8; j < 4; ++j) {
            const float2 pair = ptx::load_shared_f32x2(first ^ (2 * j * chunk_bytes));
            float* const to = acc + 4 * j + 2 * half;
            to[0] = add_c(s, to[0], pair.x), to[1] = add_c(s, to[1], pair.y);
        }
    }
}

// swap_ab: writes the 16 columns of a warp by 32 rows of 16-bit results to a box of 32 rows by 64 columns.
template <Type T>
__device__ inline void fill_transposed_16(uint32_t box, const float* acc, float alpha, const Block& at)
{
#pragma unroll
    for (int j = 0; j < transposed_box_rows / 16; ++j) {
        uint32_t bits[4];
#pragma unroll
        for (int i = 0; i < 4; ++i)
            bits[i] = to_bits2(alpha * acc[8 * j + 2 * i], alpha * acc[8 * j + 2 * i + 1], T);
        const int row = 16 * j + at.lane / 16 * 8 + at.lane % 8;
        ptx::stmatrix_x4_trans(box + swizzle<span_bytes>(row, at.warp * 2 + at.lane / 8 % 2), bits);
    }
}

// swap_ab: writes floats to two boxes of 32 rows by 32 columns.
__device__ inline void fill_transposed_32(unsigned char* box, const float* acc, float alpha,
                                          const Block& at)
{
#pragma unroll
    for (int i = 0; i < transposed_box_rows / 2; ++i) {
        const int row = i / 4 * 8 + at.lane % 4 * 2 + i % 2;
        const int column = at.warp * 16 + i / 2 % 2 * 8 + at.lane / 4;
        unsigned char* half = box + column / 32 * (transposed_box_rows * span_bytes);
        float* to = reinterpret_cast<float*>(half + swizzle<span_bytes>(row, column % 32 / 4));
        to[column % 4] = alpha * acc[i];
    }
}

}  // namespace hg::sm90
