// Boxes of shared memory that TMA stores, or has filled with C: how a warp's accumulators come there, and
// what it adds to them from there.
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

// A consumer, and where its 64 x C.y block lies in the output, in elements.
struct Block {
    int consumer, warp, lane;
    int64_t m, n;
    int32_t batch;
    unsigned char* staging;
    float* bias;      // of the tile
    uint32_t c_full;  // barriers: a box of C has come

    template <Config C, Major MB>
    __device__ static Block of(Smem<C, MB>& smem, const TileCoord& at, int consumer, int first_block)
    {
        const int thread = threadIdx.x % 128;
        return {consumer,
                thread / 32,
                thread % 32,
                int64_t{at.m} * C.tile_m + first_block * 64,
                int64_t{at.n} * C.tile_n,
                at.batch,
                smem.staging[consumer],
                smem.bias[consumer],
                ptx::shared_address(smem.c_full[consumer])};
    }

    // One thread, which also waits for what it has stored.
    __device__ bool leads() const { return warp == 0 && lane == 0; }
};

// The shared address of a lane's first chunk in a swizzled box. Others of its line are an exclusive or
// away; worked out again for each box, since nvcc would keep all of them beside the accumulators.
template <int Span>
__device__ inline uint32_t chunk_of_box(uint32_t box, int row, int chunk)
{
    return ptx::mov_b32(box + swizzle<Span>(row, chunk));
}

// Of the eight rows of a matrix that stmatrix and ldmatrix take, a warp's 16 rows and 16 columns.
template <int Columns>
__device__ inline uint32_t matrices_of_box(uint32_t box, const Block& at)
{
    return chunk_of_box<2 * Columns>(box, at.warp * 16 + at.lane / 8 % 2 * 8 + at.lane % 8, at.lane / 16);
}

// Sixteen rows of a warp x Columns columns of 16-bit results into a swizzled box of 64 rows.
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

// Sixteen rows of a warp x 32 columns of floats: two neighbours a lane, in rows lane / 4 and + 8.
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
__device__ inline float add_c(const Scalars& s, float sum, float of_c)
{
    return fmaf(s.beta, of_c, __fmul_rn(s.alpha, sum));
}

// Adds C to what fill_box_16() would put into the box, but to the first `done` columns.
template <Type T, int Columns>
__device__ inline void add_box_16(float* acc, uint32_t box, int done, const Scalars& s, const Block& at)
{
    const uint32_t first = matrices_of_box<Columns>(box, at);
#pragma unroll
    for (int j = done / 16; j < Columns / 16; ++j) {
        uint32_t bits[4];
        ptx::ldmatrix_x4(bits, first ^ (2 * j * chunk_bytes));
#pragma unroll
        for (int i = 0; i < 8; ++i)
            if (16 * j + i / 4 * 8 >= done)
                acc[8 * j + i] =
                    add_c(s, acc[8 * j + i], to_float(static_cast<uint16_t>(bits[i / 2] >> i % 2 * 16), T));
    }
}

// The same with floats, as fill_box_32() would put them.
__device__ inline void add_box_32(float* acc, uint32_t box, int done, const Scalars& s, const Block& at)
{
#pragma unroll
    for (int half = 0; half < 2; ++half) {
        const uint32_t first = floats_of_box(box, half, at);
#pragma unroll
        for (int j = done / 8; j < 4; ++j) {
            const float2 pair = ptx::load_shared_f32x2(first ^ (2 * j * chunk_bytes));
            float* const to = acc + 4 * j + 2 * half;
            to[0] = add_c(s, to[0], pair.x), to[1] = add_c(s, to[1], pair.y);
        }
    }
}

// Swapped: sixteen columns of a warp x 32 rows of 16-bit results into a box of 32 rows x 64 columns.
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

// Swapped: of floats, into two boxes of 32 rows x 32 columns.
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
