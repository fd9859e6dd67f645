// A tile of a split kernel, or what one of its consumers has of it, in the type of the output, on its way
// through shared memory: how fragments come there and whole vectors leave.
#pragma once

#include "arch/common/divisor.hpp"
#include "arch/common/elements.cuh"
#include "arch/common/ptx/matrix.cuh"
#include "arch/common/ptx/warp.cuh"
#include "arch/common/types.hpp"
#include "arch/sm90/config.hpp"
#include "arch/sm90/params.hpp"
#include "arch/sm90/smem.hpp"
#include "arch/sm90/split_k/stagger.cuh"

#include <cstdint>

namespace hg::sm90 {

// The blocks of eight y that a slice owns: Params::part of them, the last ones fewer or none.
struct Part {
    int first, last;

    template <Config C>
    __device__ static Part of(const Params& p, int slice)
    {
        return {min(slice * p.part, C.tile_n / 8), min(slice * p.part + p.part, C.tile_n / 8)};
    }

    __device__ int blocks() const { return last - first; }
    __device__ bool has(int block) const { return first <= block && block < last; }
};

// Of the tile of x by c.y in the output's type, x = c.x or a consumer's 64. Elements of a row: an odd
// number of 16-byte units, so that eight rows meet no bank twice.
constexpr int typed_pitch(const Config& c, int m, bool swap_ab)
{
    return 8 * ((swap_ab ? m : c.tile_n) / 8 | 1);
}

// Bytes from one block of eight y to the next.
constexpr int typed_step(const Config& c, int m, bool swap_ab)
{
    return 2 * (swap_ab ? 8 * typed_pitch(c, m, swap_ab) : 8);
}

constexpr int max_typed_bytes(const Config& c, int m)
{
    const int plain = m * typed_pitch(c, m, false), transposed = c.tile_n * typed_pitch(c, m, true);
    return 2 * (plain > transposed ? plain : transposed);
}

// The x that are stored together: a consumer's, where each stores by itself.
struct SharedRows {
    int32_t first, count, threads;

    template <Config C>
    __device__ static SharedRows of(const Params& p)
    {
        const int32_t consumer = static_cast<int32_t>(threadIdx.x) / 128;
        return does_stagger<C>(p) ? SharedRows{64 * consumer, 64, 128}
                                  : SharedRows{0, C.tile_m, 128 * C.consumers};
    }
};

// One block of eight y or two, of a warp's 16 x.
template <bool SwapAb>
__device__ inline void store_blocks(uint32_t to, const uint32_t (&bits)[4], bool two)
{
    if (SwapAb && two)
        ptx::stmatrix_x4_trans(to, bits);
    else if (two)
        ptx::stmatrix_x4(to, bits);
    else if (SwapAb)
        ptx::stmatrix_x2_trans(to, bits[0], bits[1]);
    else
        ptx::stmatrix_x2(to, bits[0], bits[1]);
}

// Where a warp's fragments of block 0 of a tile at `tile` go.
template <Config C>
__device__ inline uint32_t typed_place(const void* tile, const Params& p)
{
    const auto shared = SharedRows::of<C>(p);
    const int lane = threadIdx.x % 32, m = threadIdx.x / 32 * 16 - shared.first + lane / 8 % 2 * 8;
    const int row = p.swap_ab ? lane / 16 * 8 + lane % 8 : m + lane % 8;
    const int column = p.swap_ab ? m : lane / 16 * 8;
    return ptx::shared_address(tile) + 2 * (row * typed_pitch(C, shared.count, p.swap_ab) + column);
}

// All blocks of a tile of X by C.y, the first at `to`.
template <Config C, Type T, int M, bool SwapAb>
__device__ inline void stage_blocks(uint32_t to, const float (&acc)[C.tile_n / 2])
{
    constexpr int blocks = C.tile_n / 8, step = typed_step(C, M, SwapAb);
#pragma unroll
    for (int block = 0; block < blocks; block += 2) {
        uint32_t bits[4] = {};
#pragma unroll
        for (int i = 0; i < 4 && 4 * block + 2 * i < C.tile_n / 2; ++i)
            bits[i] = to_bits2(acc[4 * block + 2 * i], acc[4 * block + 2 * i + 1], T);
        store_blocks<SwapAb>(to + block * step, bits, block + 1 < blocks);
    }
}

// A thread's vectors of the owned part of such a tile: where they lie and where they go. Found before the
// product, while the first k tiles are on their way: what depends on each other in it takes hundreds of
// cycles.
struct VectorRows {
    char* d;
    int64_t step;   // bytes from one to the next
    uint32_t from;  // bytes from the tile's first on
    int32_t from_step, count;

    template <Config C>
    __device__ static VectorRows of(const Params& p, const TileCoord& at, const Part& part)
    {
        const bool swap_ab = p.swap_ab;
        const auto shared = SharedRows::of<C>(p);
        const int32_t thread = static_cast<int32_t>(threadIdx.x) % shared.threads;
        const int32_t at_once = p.rows_at_once.value, first = p.row_vectors.quotient(thread);
        const int32_t in_row = thread - first * p.row_vectors.value;
        const int32_t vector = in_row + (swap_ab ? 0 : part.first);
        const int32_t pitch = typed_pitch(C, shared.count, swap_ab);
        const int64_t m = int64_t{at.m} * C.tile_m + shared.first, n = int64_t{at.n} * C.tile_n;
        const int64_t i = swap_ab ? n : m, j = (swap_ab ? m : n) + vector * epilogue_vector;
        const int32_t begin = first + (swap_ab ? 8 * part.first : 0);
        const auto exist =
            static_cast<int32_t>(min(int64_t{swap_ab ? 8 * part.last : shared.count}, p.output.m - i));
        const bool none =
            j >= p.output.n || first >= at_once || begin >= exist || (!swap_ab && in_row >= part.blocks());
        const int64_t first_element = at.batch * p.output.stride_d + (i + begin) * p.output.ldd + j;
        return {static_cast<char*>(p.output.d) + 2 * first_element, 2 * at_once * p.output.ldd,
                static_cast<uint32_t>(2 * (begin * pitch + vector * epilogue_vector)), 2 * at_once * pitch,
                none ? 0 : p.rows_at_once.quotient(exist - begin - 1) + 1};
    }

    __device__ void store(const void* tile) const
    {
        const char* next = static_cast<const char*>(tile) + from;
        char* to = d;
#pragma unroll 4
        for (int32_t i = 0; i < count; ++i, next += from_step, to += step)
            *reinterpret_cast<uint4*>(to) = *reinterpret_cast<const uint4*>(next);
    }
};

}  // namespace hg::sm90
