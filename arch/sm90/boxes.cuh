// Boxes of shared memory that TMA stores: how a warp's accumulators come there.
#pragma once

#include "arch/sm90/bias.cuh"

namespace hg::sm90 {

// A consumer, and where its 64 x C.y block lies in the output, in elements.
struct Block {
    int consumer, warp, lane;
    int64_t x, y;
    int32_t batch;
    unsigned char* staging;
};

// Sixteen rows of a warp x Columns columns of 16-bit results into a swizzled box of 64 rows.
template <Type T, int Columns>
__device__ inline void fill_box_16(uint32_t box, const float* acc, float alpha, const Block& at)
{
    const int row = at.warp * 16 + at.lane / 8 % 2 * 8 + at.lane % 8;
#pragma unroll
    for (int j = 0; j < Columns / 16; ++j) {
        uint32_t bits[4];
#pragma unroll
        for (int i = 0; i < 4; ++i)
            bits[i] = to_bits2(alpha * acc[8 * j + 2 * i], alpha * acc[8 * j + 2 * i + 1], T);
        ptx::stmatrix_x4(box + swizzle<2 * Columns>(row, 2 * j + at.lane / 16), bits);
    }
}

// Sixteen rows of a warp x 32 columns of floats.
__device__ inline void fill_box_32(unsigned char* box, const float* acc, float alpha, const Block& at)
{
#pragma unroll
    for (int j = 0; j < 4; ++j)
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            const int row = at.warp * 16 + half * 8 + at.lane / 4, column = 8 * j + at.lane % 4 * 2;
            float* to = reinterpret_cast<float*>(box + swizzle<span_bytes>(row, column / 4)) + column % 4;
            *reinterpret_cast<float2*>(to) =
                make_float2(alpha * acc[4 * j + 2 * half], alpha * acc[4 * j + 2 * half + 1]);
        }
}

// Swapped: sixteen columns of a warp x 32 rows of 16-bit results into a box of 32 rows x 64 columns.
template <Type T>
__device__ inline void fill_swapped_16(uint32_t box, const float* acc, float alpha, const Block& at)
{
#pragma unroll
    for (int j = 0; j < swapped_box_rows / 16; ++j) {
        uint32_t bits[4];
#pragma unroll
        for (int i = 0; i < 4; ++i)
            bits[i] = to_bits2(alpha * acc[8 * j + 2 * i], alpha * acc[8 * j + 2 * i + 1], T);
        const int row = 16 * j + at.lane / 16 * 8 + at.lane % 8;
        ptx::stmatrix_x4_trans(box + swizzle<span_bytes>(row, at.warp * 2 + at.lane / 8 % 2), bits);
    }
}

// Swapped: of floats, into two boxes of 32 rows x 32 columns.
__device__ inline void fill_swapped_32(unsigned char* box, const float* acc, float alpha, const Block& at)
{
#pragma unroll
    for (int i = 0; i < swapped_box_rows / 2; ++i) {
        const int row = i / 4 * 8 + at.lane % 4 * 2 + i % 2;
        const int column = at.warp * 16 + i / 2 % 2 * 8 + at.lane / 4;
        unsigned char* half = box + column / 32 * (swapped_box_rows * span_bytes);
        float* to = reinterpret_cast<float*>(half + swizzle<span_bytes>(row, column % 32 / 4));
        to[column % 4] = alpha * acc[i];
    }
}

}  // namespace hg::sm90
