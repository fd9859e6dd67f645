// A split-K kernel's tile, or one consumer's rows of it, in the type of the output in shared memory: how
// fragments get there and how whole vectors leave.
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

// Where the rows of D end that a tile may store.
template <Config C, Major MB>
__device__ inline int64_t end_of_rows(const Params& p, const Smem<C, MB>& smem)
{
    if constexpr (C.groups)
        return smem.end;
    else
        return p.output.m;
}

// The blocks of eight columns that a slice owns: Params::blocks_per_owner of them, fewer or none in the
// last slices.
struct OwnedBlocks {
    int first, last;

    template <Config C>
    __device__ static OwnedBlocks of(const Params& p, int slice)
    {
        return {min(slice * p.blocks_per_owner, C.tile_n / 8),
                min(slice * p.blocks_per_owner + p.blocks_per_owner, C.tile_n / 8)};
    }

    __device__ int blocks() const { return last - first; }
    __device__ bool has(int block) const { return first <= block && block < last; }
};

// Elements from row to row of a staged tile of m by n, m = tile_m or a consumer's 64, n = tile_n, in the
// output's type: an odd number of 16-byte units, so that eight rows touch every bank once.
constexpr int typed_pitch(int m, int n, bool swap_ab) { return 8 * ((swap_ab ? m : n) / 8 | 1); }

// Bytes from one block of eight columns to the next.
constexpr int typed_step(int m, int n, bool swap_ab)
{
    return 2 * (swap_ab ? 8 * typed_pitch(m, n, swap_ab) : 8);
}

constexpr int max_typed_bytes(int m, int n)
{
    const int plain = m * typed_pitch(m, n, false), transposed = n * typed_pitch(m, n, true);
    return 2 * (plain > transposed ? plain : transposed);
}

// The rows of A that are staged and stored together: the tile, or a consumer's rows where each stores its
// own.
struct StoredRows {
    int32_t first, count, threads;

    template <Config C>
    __device__ static StoredRows of(const Params& p)
    {
        const int32_t consumer = static_cast<int32_t>(threadIdx.x) / 128;
        return does_stagger<C>(p) ? StoredRows{64 * consumer, 64, 128}
                                  : StoredRows{0, C.tile_m, 128 * C.consumers};
    }
};

// One or two blocks of eight columns of a warp's 16 rows.
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

// The address that this lane passes to stmatrix for block 0 of a staged tile at `tile`.
template <Config C>
__device__ inline uint32_t typed_place(const void* tile, const Params& p)
{
    const auto shared = StoredRows::of<C>(p);
    const int lane = threadIdx.x % 32, m = threadIdx.x / 32 * 16 - shared.first + lane / 8 % 2 * 8;
    const int row = p.swap_ab ? lane / 16 * 8 + lane % 8 : m + lane % 8;
    const int column = p.swap_ab ? m : lane / 16 * 8;
    return ptx::shared_address(tile) + 2 * (row * typed_pitch(shared.count, C.tile_n, p.swap_ab) + column);
}

// Stages all blocks of a warp; `to`: the address for the first.
template <Config C, Type T, int M, bool SwapAb>
__device__ inline void stage_blocks(uint32_t to, const float (&acc)[C.tile_n / 2])
{
    constexpr int blocks = C.tile_n / 8, step = typed_step(M, C.tile_n, SwapAb);
#pragma unroll
    for (int block = 0; block < blocks; block += 2) {
        uint32_t bits[4] = {};
#pragma unroll
        for (int i = 0; i < 4 && 4 * block + 2 * i < C.tile_n / 2; ++i)
            bits[i] = to_bits2(acc[4 * block + 2 * i], acc[4 * block + 2 * i + 1], T);
        store_blocks<SwapAb>(to + block * step, bits, block + 1 < blocks);
    }
}

// A thread's vectors of the owned blocks: where they lie in the staged tile and where they go in D.
// Computed before the main loop, while the first K tiles are on their way: the chain of dependent
// instructions takes hundreds of cycles.
struct VectorRows {
    char* d;
    int64_t step;   // bytes from one vector to the next
    uint32_t from;  // bytes from the start of the tile
    int32_t from_step, count;

    template <Config C, Major MB>
    __device__ static VectorRows of(const Params& p, const Smem<C, MB>& smem, const OwnedBlocks& owned)
    {
        const TileCoord& at = smem.at;
        const bool swap_ab = p.swap_ab;
        const auto shared = StoredRows::of<C>(p);
        const int32_t thread = static_cast<int32_t>(threadIdx.x) % shared.threads;
        const int32_t at_once = p.rows_at_once.value, first = p.row_vectors.quotient(thread);
        const int32_t in_row = thread - first * p.row_vectors.value;
        const int32_t vector = in_row + (swap_ab ? 0 : owned.first);
        const int32_t pitch = typed_pitch(shared.count, C.tile_n, swap_ab);
        const int64_t m = int64_t{at.m} + shared.first, n = at.n;
        const int64_t i = swap_ab ? n : m, j = (swap_ab ? m : n) + vector * epilogue_vector;
        const int32_t begin = first + (swap_ab ? 8 * owned.first : 0);
        const auto exist = static_cast<int32_t>(
            min(int64_t{swap_ab ? 8 * owned.last : shared.count}, end_of_rows(p, smem) - i));
        const bool none =
            j >= p.output.n || first >= at_once || begin >= exist || (!swap_ab && in_row >= owned.blocks());
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
