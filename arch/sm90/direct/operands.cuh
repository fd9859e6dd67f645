// The operands of a direct kernel as its lanes read them: see kernel.cuh.
#pragma once

#include "arch/common/elements.cuh"
#include "arch/common/ptx/global.cuh"
#include "arch/common/types.hpp"
#include "arch/sm90/direct/config.hpp"

#include <cstdint>

namespace hg::sm90 {

__device__ inline uint4 load_vector(uintptr_t address) { return *reinterpret_cast<const uint4*>(address); }

__device__ inline const uint16_t* first_element(const DirectOperand& o, int32_t z)
{
    return problem_base(o.ptr, o.array, z, 2 * o.batch_stride);
}

// The vectors of A that a lane loads for a step: `along` of them along K, in `lines` rows (K-major) or K's
// (MN-major). K-major: of every eighth row every fourth vector of eight K's. MN-major: for each of eight
// K's one vector of eight rows. `g`, 0 ... 7, counts rows or vectors of rows, `t`, 0 ... 3, vectors of K's.
template <DirectConfig C, Major M>
struct DirectA {
    static constexpr int step = direct_step(C, M), along = M == Major::K ? step / 32 : 1;
    static constexpr int lines = direct_vectors / along;
    uintptr_t base;          // address of the warp's first row
    uint32_t offset[lines];  // bytes from `base`, in step 0
    int64_t pitch;           // bytes from step to step
    int32_t rows_left;       // of the eight of a vector (MN-major)
    bool aligned;            // every vector of the tile is

    __device__ DirectA(const DirectOperand& o, int32_t first_row, int32_t z, int g, int t)
    {
        const uint16_t* const ptr = first_element(o, z);
        const int64_t outer_stride = M == Major::K ? o.row_stride : o.k_stride;
        // Lanes of rows past the end read existing rows; the epilogue does not store their sums.
        const int32_t begin = min(first_row, o.rows - 1), last_row = o.rows - 1 - begin;
        const int32_t first = M == Major::K ? 0 : 8 * min(g, last_row / 8);
        base = reinterpret_cast<uintptr_t>(ptr + begin * o.row_stride);
        pitch = step * 2 * o.k_stride;
        aligned = (base | static_cast<uintptr_t>(2 * outer_stride)) % 16 == 0;
        rows_left = last_row + 1 - first;
#pragma unroll
        for (int i = 0; i < lines; ++i)
            offset[i] = M == Major::K
                            ? static_cast<uint32_t>(min(g + 8 * i, last_row) * 2 * outer_stride) + 16 * t
                            : static_cast<uint32_t>((8 * t + i) * 2 * outer_stride) + 2 * first;
    }

    __device__ uintptr_t address(int32_t index, int vector) const
    {
        return base + index * pitch + offset[vector / along] + vector % along * 64;
    }

    // Loads a step. Every vector that it touches must lie between the operand's first and last element.
    template <bool Aligned>
    __device__ void load(uint4 (&v)[direct_vectors], int32_t index) const
    {
        if constexpr (Aligned) {
#pragma unroll
            for (int i = 0; i < direct_vectors; ++i)
                v[i] = load_vector(address(index, i));
        } else {
            uint4 high[direct_vectors];
#pragma unroll
            for (int i = 0; i < direct_vectors; ++i) {
                v[i] = load_vector(address(index, i) & ~uintptr_t{15});
                high[i] = load_vector((address(index, i) + 15) & ~uintptr_t{15});
            }
#pragma unroll
            for (int i = 0; i < direct_vectors; ++i)
                v[i] = extract_vector(v[i], high[i], static_cast<uint32_t>(address(index, i)) % 16);
        }
    }

    // Loads existing elements one by one: `k_left` K's from this lane's first one on.
    __device__ void gather(uint4 (&v)[direct_vectors], int32_t index, int32_t k_left) const
    {
#pragma unroll
        for (int i = 0; i < direct_vectors; ++i) {
            const int32_t count = M == Major::K ? k_left - i % along * 32 : i < k_left ? rows_left : 0;
            v[i] = gather_vector(reinterpret_cast<const uint16_t*>(address(index, i)), 1, count);
        }
    }

    __device__ void prefetch(int32_t index) const
    {
#pragma unroll
        for (int i = 0; i < direct_vectors; ++i)
            ptx::prefetch_l2(reinterpret_cast<const void*>(address(index, i)));
    }
};

// The vectors of B that a lane loads for a step: of columns g, g + 8, ... those with the K's of its vectors
// of A.
template <DirectConfig C, Major M>
struct DirectB {
    static constexpr int along = DirectA<C, M>::along, rows = C.tile_n / 8, vectors = rows * along;
    const uint16_t* row[rows];
    int64_t k_stride;
    bool aligned;

    __device__ DirectB(const DirectOperand& o, int32_t first_row, int32_t z, int g) : k_stride(o.k_stride)
    {
        const uint16_t* const ptr = first_element(o, z);
        aligned = (reinterpret_cast<uintptr_t>(ptr) | static_cast<uintptr_t>(2 * o.row_stride)) % 16 == 0;
#pragma unroll
        for (int i = 0; i < rows; ++i)
            row[i] = ptr + min(first_row + g + 8 * i, o.rows - 1) * o.row_stride;
    }

    __device__ uintptr_t address(int32_t k, int vector) const
    {
        return reinterpret_cast<uintptr_t>(row[vector / along] + k + vector % along * 32);
    }

    __device__ void load(uint4 (&v)[vectors], int32_t k) const
    {
        if (aligned) {
#pragma unroll
            for (int i = 0; i < vectors; ++i)
                v[i] = load_vector(address(k, i));
            return;
        }
#pragma unroll
        for (int i = 0; i < vectors; ++i)
            v[i] = extract_vector(load_vector(address(k, i) & ~uintptr_t{15}),
                                  load_vector((address(k, i) + 15) & ~uintptr_t{15}),
                                  static_cast<uint32_t>(address(k, i)) % 16);
    }

    __device__ void gather(uint4 (&v)[vectors], int32_t k, int32_t k_left) const
    {
#pragma unroll
        for (int i = 0; i < vectors; ++i)
            v[i] = gather_vector(row[i / along] + (k + i % along * 32) * k_stride, k_stride,
                                 k_left - i % along * 32);
    }
};

}  // namespace hg::sm90
